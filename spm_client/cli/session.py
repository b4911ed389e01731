"""What commands share: the store, its configuration, the registry, the target, and where output goes."""

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manifests.plain import plain

if TYPE_CHECKING:
    from datetime import datetime

    from keys.keyring import LoaderConf
    from manifests.lockfile import Generation
    from manifests.target import Target
    from spm_client.adapters.http import RegistryClient
    from spm_client.store.layout import Layout

MAX_TARGET_BYTES = 1 << 20
_LAST_SECOND = 253_402_300_799


class Session:
    """One run of `spm`. Everything is read when it is first asked for."""

    def __init__(self, *, is_json: bool, environment: dict[str, str]) -> None:
        self.is_json = is_json
        self.is_explained = False
        self.environment = environment
        self.root_named: str | None = None
        self.partial: dict[str, Any] = {}
        """What a command has found out before it refuses; printed with the refusal."""

    @property
    def root(self) -> Path:
        """The folder of the store."""
        from spm_client.adapters.config import store_root

        return store_root(self.root_named, self.environment)

    @property
    def layout(self) -> "Layout":
        from spm_client.store.layout import Layout

        return Layout(self.root)

    def conf(self) -> "LoaderConf":
        """Return what this host trusts.

        Raises: ConfigError when loader.conf is absent, open to others, or not as it must be.
        """
        from keys.keyring import LoaderConf

        return LoaderConf.read(self.layout.conf)

    @staticmethod
    def now() -> "datetime":
        """Return the clock's reading, by which trust is judged; no variable stands in for it."""
        from datetime import UTC, datetime

        return datetime.now(UTC)

    def generation(self, registry: str) -> "Generation":
        from spm_client.store.generations import read_current

        return read_current(self.layout, registry)

    def client(self, conf: "LoaderConf", *, is_authorized: bool = False) -> "RegistryClient":
        """Return the registry that loader.conf names.

        Raises: AuthRequired when a token is needed and there is none.
        """
        from spm_client.adapters.http import RegistryClient

        return RegistryClient(conf.registry_url, token=self._token(conf.registry_url) if is_authorized else None)

    def _token(self, url: str) -> str:
        from manifests.errors import AuthRequired
        from spm_client.adapters.config import Credentials

        token = Credentials(self.environment).token(url)
        if token is None:
            raise AuthRequired(f"there is no token for the registry at `{url}`", hint="`spm login` keeps one")
        return token

    def target(self, path: str | None) -> "Target":
        """Return the target in a file, or this host as probed."""
        if path is None:
            from runtime.probe import probe_target

            return probe_target()
        return read_target(Path(path))

    def say(self, text: str) -> None:
        """Print a line for a person; with `--json` stdout is kept for the document."""
        print(plain(text), file=sys.stderr if self.is_json else sys.stdout)

    def emit(self, document: dict[str, Any]) -> None:
        """Print the JSON document, where it was asked for."""
        if self.is_json:
            print(json.dumps(document))

    @property
    def wants_progress(self) -> bool:
        return sys.stderr.isatty() and not self.is_json and self.environment.get("TERM") != "dumb"


def read_target(path: Path) -> "Target":
    """Read a target document.

    Raises: UsageError when it is not there or not JSON; TypeMismatch listing every problem.
    """
    from manifests.errors import UsageError
    from manifests.target import Target

    try:
        with path.open("rb") as file:
            value = json.loads(file.read(MAX_TARGET_BYTES))
    except OSError as error:
        raise UsageError(f"the target `{path}` cannot be read: {os.strerror(error.errno or 0)}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the target `{path}` is not JSON: {error}") from error
    return Target.from_dict(value)


def target_option(path: str | None) -> str:
    """Return the words that name the same target to another command."""
    import shlex

    return "" if path is None else f"--target {shlex.quote(path)}"


def timestamp(environment: dict[str, str]) -> str:
    """Return now in RFC 3339 UTC; `SOURCE_DATE_EPOCH` stands in for it where builds must be repeatable."""
    from datetime import UTC, datetime

    from manifests.errors import UsageError

    epoch = environment.get("SOURCE_DATE_EPOCH", "")
    if epoch and not (re.fullmatch(r"[0-9]{1,12}", epoch) and int(epoch) <= _LAST_SECOND):
        raise UsageError(
            f"`SOURCE_DATE_EPOCH` is {epoch[:40]!r}, not the seconds since 1970 of a year before 10000",
            hint="unset it, or set it as in `SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)`",
        )
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")
