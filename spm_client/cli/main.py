"""The entry of `spm`: picks a command and turns refusals into text, JSON and an exit code. Does no work of its own.

What a command needs is imported when the command runs: `spm --version` must cost no more than starting Python.
"""

import gc
import io
import sys

COMMANDS = {
    "install": "install plugins and what they require",
    "uninstall": "remove plugins",
    "list": "show what is installed",
    "rollback": "return to what was installed before the last change",
    "gc": "free what neither the current nor the previous generation needs",
    "search": "find plugins of the registry by name, words or device",
    "info": "show what the registry has of a plugin",
    "verify": "check what is installed: signatures, files, waste traps",
    "init": "begin a project: write spm.toml",
    "add": "add plugins to spm.toml and lock them",
    "remove": "take plugins out of spm.toml and lock what is left",
    "lock": "resolve spm.toml for all its targets into spm.lock",
    "sync": "install exactly what spm.lock says",
    "upgrade": "lock newer releases: of all plugins, or of those named",
    "outdated": "show which locked or installed plugins have newer releases",
    "tree": "show what requires what",
    "why": "show why a plugin is there",
    "run": "run a plugin on input files, in its sandbox",
    "bundle": "carry plugins to hosts without a network: export, verify, import",
    "trust": "show and bring up to date what this store remembers of its registry",
    "doctor": "tell in plain words whether plugins can be installed and run here",
    "keys": "make and show signing keys",
    "pack": "compile a source folder into a manifest and blobs",
    "sign": "sign a packed manifest",
    "publish": "send a signed release to the registry",
    "yank": "withdraw a release from new resolutions",
    "login": "keep a registry token",
    "target": "describe this host as a value",
    "completion": "print a shell's completion script",
}


def main(argv: list[str] | None = None) -> int:
    """Run `spm` with the arguments and return its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        from spm_client import __version__

        print(f"spm {__version__}")
        return 0
    # Looking for cycles among what imports leave behind takes an eighth of a short command's time.
    gc.set_threshold(50_000)
    from spm_client.cli.command import run

    # A name or a path that the terminal cannot show must not end a command half way.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return run(arguments, COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
