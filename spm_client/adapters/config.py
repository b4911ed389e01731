"""The user's own settings: which store, which keys, which token. Holds no trust: that is loader.conf's alone."""

import json
import os
import stat
from pathlib import Path

from manifests.errors import ConfigPermissions, ConfigSyntax

SYSTEM_ROOT = Path("/opt/spm")


def store_root(named: str | None, environment: dict[str, str]) -> Path:
    """Return the store: `--root`, then `SPM_ROOT`, then /opt/spm for the user `spm`, else the user's data folder."""
    if named or environment.get("SPM_ROOT"):
        return Path(named or environment["SPM_ROOT"]).absolute()
    if environment.get("USER") == "spm":
        return SYSTEM_ROOT
    return _home(environment, "XDG_DATA_HOME", ".local/share") / "spm"


def keys_folder(named: str | None, environment: dict[str, str]) -> Path:
    """Return where the user's signing keys lie: `--keys`, else the user's configuration folder."""
    return Path(named).absolute() if named else _home(environment, "XDG_CONFIG_HOME", ".config") / "spm" / "keys"


def _home(environment: dict[str, str], variable: str, default: str) -> Path:
    named = environment.get(variable, "")
    return Path(named) if named.startswith("/") else Path.home() / default / ""


class Credentials:
    """Tokens by registry URL in a file that only its owner may read."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.path = _home(environment, "XDG_CONFIG_HOME", ".config") / "spm" / "credentials.json"
        self._environment = environment

    def token(self, url: str) -> str | None:
        """Return the token for a registry: `SPM_TOKEN`, else the one that `spm login` kept."""
        return self._environment.get("SPM_TOKEN") or self._read().get(url)

    def keep(self, url: str, token: str) -> None:
        tokens = self._read() | {url: token}
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self.path.with_suffix(f".{os.getpid()}")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(tokens, file, indent=1)
        os.replace(temporary, self.path)

    def _read(self) -> dict[str, str]:
        try:
            with self.path.open(encoding="utf-8") as file:
                if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                    raise ConfigPermissions(
                        f"`{self.path}` can be read by others", hint=f"chmod 600 {self.path}", path=str(self.path)
                    )
                tokens = json.loads(file.read(1 << 20))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise ConfigSyntax(
                f"`{self.path}` is not JSON: {error}", hint="remove it and run `spm login`", path=str(self.path)
            ) from error
        if not isinstance(tokens, dict):
            raise ConfigSyntax(f"`{self.path}` is not a table of tokens", hint="remove it and run `spm login`")
        return {str(url): str(token) for url, token in tokens.items()}
