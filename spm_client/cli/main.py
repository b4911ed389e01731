"""The entry of `spm`: picks a command and turns refusals into text, JSON and an exit code. Does no work of its own.

What a command needs is imported when the command runs: `spm --version` must cost no more than starting Python.
"""

import io
import sys

COMMANDS = {
    "install": "install plugins and what they require",
    "uninstall": "remove plugins",
    "list": "show what is installed",
    "info": "show what the registry has of a plugin",
    "verify": "check what is installed: signatures, files, waste traps",
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
}


def main(argv: list[str] | None = None) -> int:
    """Run `spm` with the arguments and return its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        from spm_client import __version__

        print(f"spm {__version__}")
        return 0
    from spm_client.cli.command import run

    # A name or a path that the terminal cannot show must not end a command half way.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return run(arguments, COMMANDS)


if __name__ == "__main__":
    sys.exit(main())
