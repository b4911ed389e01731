"""The user's own settings: which store, which keys, which token. Holds no trust: that is loader.conf's alone."""

import json
import os
import stat
from pathlib import Path

from manifests.errors import ConfigPermissions, ConfigSyntax, UsageError

SYSTEM_ROOT = Path("/opt/spm")


def store_root(named: str | None, environment: dict[str, str]) -> Path:
    """Return the store: `--root`, then `SPM_ROOT`, then /opt/spm for the user `spm`, else the user's data folder."""
    if named is not None:
        return _named_folder("--root", named)
    if environment.get("SPM_ROOT"):
        return Path(environment["SPM_ROOT"]).absolute()
    if environment.get("USER") == "spm":
        return SYSTEM_ROOT
    return _home(environment, "XDG_DATA_HOME", ".local/share") / "spm"


def keys_folder(named: str | None, environment: dict[str, str]) -> Path:
    """Return where the user's signing keys lie: `--keys`, else the user's configuration folder."""
    if named is not None:
        return _named_folder("--keys", named)
    return _home(environment, "XDG_CONFIG_HOME", ".config") / "spm" / "keys"


def _named_folder(option: str, named: str) -> Path:
    # An unset shell variable must not send a command to another folder than the one meant.
    if not named:
        raise UsageError(f"`{option}` names no folder: it is empty")
    return Path(named).absolute()


def _home(environment: dict[str, str], variable: str, default: str) -> Path:
    """Return a folder of the XDG base directory specification, which has relative paths ignored."""
    if (named := environment.get(variable, "")).startswith("/"):
        return Path(named)
    if (home := environment.get("HOME", "")).startswith("/"):
        return Path(home) / default
    try:
        return Path.home() / default
    except RuntimeError as error:
        raise UsageError(
            f"there is no home folder, and neither `{variable}` nor `HOME` names one",
            hint=f"set `{variable}` to a folder that may be written",
        ) from error


class Credentials:
    """Tokens by registry URL in a file that only its owner may read."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.path = _home(environment, "XDG_CONFIG_HOME", ".config") / "spm" / "credentials.json"
        self._environment = environment

    def token(self, url: str) -> str | None:
        """Return the token for a registry: `SPM_TOKEN`, else the one that `spm login` kept."""
        return self._environment.get("SPM_TOKEN") or self._read().get(url.rstrip("/"))

    def keep(self, url: str, token: str) -> None:
        tokens = self._read() | {url.rstrip("/"): token}
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
        except (ValueError, RecursionError) as error:
            raise ConfigSyntax(
                f"`{self.path}` is not JSON: {error}", hint="remove it and run `spm login`", path=str(self.path)
            ) from error
        if not isinstance(tokens, dict) or not all(isinstance(token, str) for token in tokens.values()):
            raise ConfigSyntax(f"`{self.path}` is not a table of tokens", hint="remove it and run `spm login`")
        return tokens
