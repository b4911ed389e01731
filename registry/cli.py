"""The `spm-registry` command: runs one body; errors as people or programs read them. Does none of the work."""

import argparse
import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import cast

from manifests.errors import LimitReached, SpmError, UsageError
from manifests.plain import plain
from registry.arguments import parser
from registry.pasteable import pasteable

_OURS = ("registry", "keys", "manifests")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in words
    options = None
    try:
        options = parser().parse_args(words)
        code = _body(options.module)(options)
        # A reader that is gone is found out here, not when Python ends.
        sys.stdout.flush()
        return code
    except SpmError as error:
        return _refuse(error, options, as_json=as_json)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except OSError as error:
        return _refuse(_unusable(error), options, as_json=as_json)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _body(module: str) -> Callable[[argparse.Namespace], int]:
    # The bodies are imported only now, so that `--help` needs neither flask nor sqlalchemy.
    try:
        return cast(Callable[[argparse.Namespace], int], import_module(module).run)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if not missing or missing in _OURS or missing.lstrip("_") in sys.stdlib_module_names:
            raise
        raise UsageError(
            f"spm-registry needs the extra `registry`: `{missing}` is not installed",
            hint="`pip install 'seedance-spm[registry]'`; in a checkout: `pip install '.[registry]'`",
        ) from error


def _unusable(error: OSError) -> SpmError:
    where = f"{error.filename}: " if error.filename else ""
    message = f"{where}{error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LimitReached(message, reason="limit:disk", hint="make room there, then run the command again")
    return UsageError(message, hint="check the path and who may use it")


def _refuse(error: SpmError, options: argparse.Namespace | None, *, as_json: bool) -> int:
    error.hint = pasteable(error.hint, options)
    if as_json:
        print(json.dumps(error.to_dict(), default=str))
    sys.stdout.flush()
    print(plain(f"error[{error.reason}]: {error.message}"), file=sys.stderr)
    if error.hint:
        print(plain(f"  hint: {error.hint}"), file=sys.stderr)
    return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
