"""A project's folder: spm.toml, spm.lock and target documents read as values, and both files written, or neither."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from manifests.canonical import canonical_bytes
from manifests.errors import ConfigSyntax, LockDrift, LockMissing, SpmError, TooBig, UsageError
from manifests.project import MAX_PROJECT_BYTES, PROJECT_FILE, Project, spoilt
from manifests.project_lock import LOCK_FILE, MAX_LOCK_BYTES, ProjectLock
from manifests.target import Target
from spm_client.adapters.staged_files import StagedFiles, staged

MAX_TARGET_BYTES = 1 << 20


@dataclass(frozen=True)
class ProjectFolder:
    """A project as its files were when they were read. Usage: `ProjectFolder.open(found)`."""

    folder: Path
    text: str
    project: Project
    lock_bytes: bytes | None

    @classmethod
    def open(cls, folder: Path) -> "ProjectFolder":
        """Read spm.toml, and take spm.lock unread.

        Raises: LockMissing without a spm.toml; the refusals of its reader.
        """
        data = _read(folder / PROJECT_FILE, MAX_PROJECT_BYTES)
        if data is None:
            raise no_project(folder)
        text = _decoded(data)
        return cls(folder, text, Project.from_text(text), _read(folder / LOCK_FILE, MAX_LOCK_BYTES))

    @property
    def lock_path(self) -> Path:
        return self.folder / LOCK_FILE

    @cached_property
    def lock(self) -> ProjectLock | None:
        """What spm.lock says; None where there is none."""
        return None if self.lock_bytes is None else ProjectLock.from_bytes(self.lock_bytes)

    def require_lock(self) -> ProjectLock:
        """Return what spm.lock says.

        Raises: LockMissing where there is none.
        """
        if self.lock is None:
            raise LockMissing(f"`{self.folder}` has no {LOCK_FILE}", hint="`spm lock` writes it", path=str(self.folder))
        return self.lock

    @cached_property
    def targets(self) -> Mapping[str, Target]:
        """The target documents that spm.toml names.

        Raises: UsageError for one that is not there or not JSON; TypeMismatch listing every problem of one.
        """
        return {name: _read_target(self.folder / file, name) for name, file in self.project.targets}

    @contextmanager
    def changing(self, *, text: str | None = None, lock: bytes | None = None) -> Iterator["ProjectChange"]:
        """Give what is to change, synced beside the files; nothing takes their place but by its `put`.

        Raises: UsageError or LimitReached naming the file that cannot be written.
        """
        wanted = {LOCK_FILE: lock, PROJECT_FILE: None if text is None else text.encode()}
        held = self._held
        # spm.toml, whose change is what was asked for, is put in place last.
        new = {self.folder / name: data for name, data in wanted.items() if data is not None and data != held[name]}
        with staged(new, {self.folder / name: data for name, data in held.items()}) as files:
            yield ProjectChange(folder=self, files=files)

    def replace(self, *, text: str | None = None, lock: bytes | None = None) -> None:
        """Write what is given and differs, or change nothing.

        Raises: LockDrift where one of them is another than it was when it was read; UsageError, LimitReached.
        """
        with self.changing(text=text, lock=lock) as change:
            change.require_unchanged()
            change.put()

    @property
    def _held(self) -> dict[str, bytes | None]:
        return {PROJECT_FILE: self.text.encode(), LOCK_FILE: self.lock_bytes}

    def require_unchanged(self) -> None:
        """Accept both files as they were when they were read.

        Raises: LockDrift.
        """
        for name, data in self._held.items():
            if _read(self.folder / name, MAX_LOCK_BYTES) != data:
                raise LockDrift(
                    f"`{self.folder / name}` was changed by another program meanwhile; nothing was written",
                    hint="run the command again",
                    path=str(self.folder / name),
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectChange:
    """A change of a project that is on disk, and waits. Made by `ProjectFolder.changing`."""

    folder: ProjectFolder
    files: StagedFiles

    def require_unchanged(self) -> None:
        """Accept both files as they were when they were read.

        Raises: LockDrift.
        """
        self.folder.require_unchanged()

    def put(self) -> None:
        """Let both files take their place.

        Raises: UsageError or LimitReached naming the file, and then both are as they were.
        """
        self.files.put()


def find_project(start: Path) -> Path | None:
    """Return the nearest folder with a spm.toml: this one, or one above."""
    return next((folder for folder in (start, *start.parents) if (folder / PROJECT_FILE).is_file()), None)


def no_project(folder: Path) -> LockMissing:
    """Return the refusal of a command that needs a project and has none."""
    return LockMissing(
        f"`{folder}` is no project: there is no {PROJECT_FILE}",
        hint="`spm init` begins one; `--project DIR` names one that is elsewhere",
        path=str(folder),
    )


def target_digest(target: Target) -> str:
    """Return the digest of what a target document says, however it is spaced."""
    return hashlib.sha256(canonical_bytes(target.to_dict())).hexdigest()


def _read(path: Path, limit: int) -> bytes | None:
    """Return a file's bytes; None where there is none."""
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"`{path}` is no file", path=str(path))
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        if path.is_symlink():
            raise UsageError(
                f"`{path}` is a link to `{os.readlink(path)}`, which is not there",
                hint="remove the link, or put the file back that it names",
                path=str(path),
            ) from None
        return None
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {os.strerror(error.errno or 0)}", path=str(path)) from error
    if len(data) > limit:
        raise TooBig(f"`{path}` has more than the {limit} bytes allowed", path=str(path))
    return data


def _decoded(data: bytes) -> str:
    if problem := spoilt(data):
        raise ConfigSyntax(f"{PROJECT_FILE} {problem[0]}", hint=problem[1])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigSyntax(f"{PROJECT_FILE} is not UTF-8: {error}") from error


def _read_target(path: Path, name: str) -> Target:
    data = _read(path, MAX_TARGET_BYTES)
    hint = f"`spm target probe -o {path}` on that host writes it"
    if data is None:
        raise UsageError(f"the target `{name}` is to be in `{path}`, which is not there", hint=hint, target=name)
    if problem := spoilt(data):
        raise UsageError(f"the target `{name}` in `{path}` {problem[0]}", hint=problem[1], target=name)
    try:
        return Target.from_dict(json.loads(data, object_pairs_hook=_members, parse_int=_integer))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the target `{name}` in `{path}` is not JSON: {error}", hint=hint, target=name) from error
    except SpmError as error:
        raise type(error)(f"the target `{name}` in `{path}`: {error.message}", hint=hint, **error.context) from error


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name in found if sum(name == other for other, _ in pairs) > 1)
        raise ValueError(f"it has the member {twice[:64]!r} twice in one table")
    return found


def _integer(text: str) -> int:
    if len(text) >= 20:
        raise ValueError(f"it has the number {text[:40]}…, of more than 64 bits")
    return int(text)
