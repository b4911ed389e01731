"""A registry's folder: its parts, made once and opened by every worker. Holds no rules about plugins."""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from manifests.errors import ConfigError, ConfigPermissions, UsageError
from registry.storage import schema
from registry.storage.blobs import Blobs, sync_folder
from registry.storage.database import Database
from registry.storage.parts import Parts

SECRET_BYTES = 32
_DURABLE = ("registry.db", "secret", "online.key", "loader.conf", "blobs")
_OURS = (*_DURABLE, "uploads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One open registry folder."""

    root: Path
    database: Database
    blobs: Blobs
    parts: Parts
    secret: bytes

    @property
    def loader_conf(self) -> Path:
        """Return where the trust configuration is, for clients and for publishes alike."""
        return self.root / "loader.conf"

    @property
    def online_key(self) -> Path:
        """Return where the private keys are that sign the index while the registry runs."""
        return self.root / "online.key"


@contextmanager
def new_site(root: Path, online_key: bytes) -> Iterator[Site]:
    """Make an empty registry folder with its schema; it goes away again if the block does not end well.

    Raises:
        UsageError: a registry is already there; nothing was changed.
    """
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    there = [name for name in _OURS if os.path.lexists(root / name)]
    if there:
        raise _exists(root, there[0])
    _make_secret(root)
    try:
        yield _fill(root, online_key)
    except BaseException:
        remove_parts(root)
        raise
    sync_folder(root)


def open_site(root: Path) -> Site:
    """Open a registry folder that `new_site` made.

    Raises:
        UsageError: there is no registry, or not a whole one.
        ConfigPermissions: others than the owner may read its secret or its online key.
        ConfigError: its database has another schema than this code needs.
    """
    site = _whole_site(root)
    _check_schema(site)
    return site


def upgrade_site(root: Path) -> tuple[str | None, str]:
    """Bring a registry's database to the schema that this code needs; return what it had, and what it has.

    Raises:
        UsageError, ConfigPermissions: as `open_site`.
        ConfigError: its schema is none that this code knows; nothing was changed.
    """
    site = _whole_site(root)
    try:
        before = schema.current_revision(site.database)
        if schema.is_older(before):
            schema.upgrade(site.database)
        _check_schema(site)
        return before, schema.newest_revision()
    finally:
        site.database.close()


@contextmanager
def using_site(root: Path) -> Iterator[Site]:
    """Open a registry folder for one command.

    Where nobody serves it, closing it leaves all commits in the database file, which may then be copied alone.
    """
    site = open_site(root)
    try:
        yield site
    finally:
        site.database.close()


def write_public_file(path: Path, text: str) -> None:
    """Replace a file that everyone may read, whole or not at all."""
    _replace_file(path, text.encode("utf-8"), 0o644)


def write_private_file(path: Path, data: bytes) -> None:
    """Replace a file that only its owner may read, whole or not at all."""
    _replace_file(path, data, 0o600)


def _replace_file(path: Path, data: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_folder(path.parent)


def make_private_file(path: Path, data: bytes) -> None:
    """Make a file that only its owner may read; refuse to replace one."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def remove_parts(root: Path) -> None:
    """Remove all that makes a folder a registry, and nothing else."""
    for name in (*_OURS, "registry.db-wal", "registry.db-shm", "registry.db-journal"):
        path = root / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _whole_site(root: Path) -> Site:
    # `uploads` holds nothing durable; the registry makes it anew when a publish needs it.
    missing = [name for name in _DURABLE if not os.path.lexists(root / name)]
    if missing:
        raise _not_whole(root, missing)
    _check_private(root / "secret", "secret")
    _check_private(root / "online.key", "online key")
    _check_secret(root / "secret")
    return _site(root)


def _site(root: Path) -> Site:
    return Site(
        root=root,
        database=Database.at(root / "registry.db"),
        blobs=Blobs(root / "blobs"),
        parts=Parts(root / "uploads"),
        secret=(root / "secret").read_bytes(),
    )


def _fill(root: Path, online_key: bytes) -> Site:
    for name in ("blobs", "uploads"):
        (root / name).mkdir(mode=0o700)
    make_private_file(root / "online.key", online_key)
    make_private_file(root / "registry.db", b"")
    site = _site(root)
    schema.upgrade(site.database)
    return site


def _make_secret(root: Path) -> None:
    # Made first and exclusively: of two inits at once exactly one goes on.
    try:
        make_private_file(root / "secret", secrets.token_bytes(SECRET_BYTES))
    except FileExistsError as error:
        raise _exists(root, "secret") from error


def _exists(root: Path, name: str) -> UsageError:
    return UsageError(
        f"{root} already holds a registry (`{name}` is there); nothing was changed",
        hint="choose another folder with `--root`",
    )


def _not_whole(root: Path, missing: list[str]) -> UsageError:
    if missing == list(_DURABLE):
        return UsageError(
            f"{root} is not a registry: `{missing[0]}` is missing",
            hint=f"make one with `spm-registry init --root {root}`",
        )
    return UsageError(
        f"{root} is not a whole registry: {', '.join(f'`{name}`' for name in missing)} is missing",
        hint="put it back from a backup, or serve the whole backup (`spm-registry serve --root BACKUP`)",
    )


def _check_private(path: Path, what: str) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise ConfigPermissions(
            f"{path} has mode {mode:04o}: others than its owner can reach the registry's {what}",
            hint=f"chmod 600 {path}",
        )


def _check_secret(secret: Path) -> None:
    if secret.stat().st_size != SECRET_BYTES:
        raise ConfigError(f"{secret} has {secret.stat().st_size} bytes instead of {SECRET_BYTES}")


def _check_schema(site: Site) -> None:
    have, need = schema.current_revision(site.database), schema.newest_revision()
    if have != need:
        raise ConfigError(
            f"{site.root / 'registry.db'} has schema {have or 'none'}, and this program needs {need}",
            hint=f"stop the registry, copy its folder, then `spm-registry upgrade --root {site.root}`"
            if schema.is_older(have)
            else "use the version of spm-registry that made this registry",
        )
