"""The handbook's names for spm's commands: `seedance plugin install`, `seedance-plugin install`. Adds no behaviour."""

import sys

from spm_client.cli.main import main as spm

VERBS = ("verify", "install", "uninstall", "list")


def seedance() -> int:
    """Run `seedance plugin VERB ...` as `spm VERB ...`."""
    return _run(sys.argv[1:], ("plugin",))


def seedance_plugin() -> int:
    """Run `seedance-plugin VERB ...` as `spm VERB ...`."""
    return _run(sys.argv[1:], ())


def _run(arguments: list[str], words: tuple[str, ...]) -> int:
    start = len(words)
    if tuple(arguments[:start]) != words or arguments[start : start + 1] not in [[verb] for verb in VERBS]:
        name = " ".join(("seedance", *words)) if words else "seedance-plugin"
        print(f"error[usage]: write `{name} VERB ...`, VERB being {', '.join(VERBS)}", file=sys.stderr)
        return 2
    return spm(arguments[start:])
