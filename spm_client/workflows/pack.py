"""Pack: from a source folder to a manifest to sign and its blobs. Signs and sends nothing.

A source folder holds `manifest.yaml`, the tree `plugin/` that will be installed, and optionally `build.py`, which is
run as `python build.py STAGING` on a copy of that tree and may compile or fetch into it.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from manifests.author import MAX_YAML_BYTES, compile_manifest, read_yaml
from manifests.errors import LinkRefused, PathRefused, PluginFailed, TypeMismatch, UsageError
from manifests.manifest import MAX_FILES, Manifest
from manifests.parts import FileEntry
from manifests.paths import check_path
from manifests.target import Target
from spm_client.workflows.packed import is_signature_name

BUILD_SECONDS = 1800
_LEFT_OUT = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed variant on disk: `manifest.json`, `blobs/<sha256>`, and its signatures once it is signed."""

    folder: Path
    manifest: Manifest
    sha256: str


def pack(source: Path, out: Path, *, registry: str, publisher: str, created: str, host: Target) -> Packed:
    """Compile the manifest and lay the files out by digest in `out/<name>-<release>`.

    Raises: UsageError without a `manifest.yaml` and a `plugin/`, or where the output exists with other content;
    PluginFailed when build.py fails; TypeMismatch listing every problem of manifest.yaml.
    """
    author = _author_bytes(source)
    _require_plain(source / "plugin")
    with tempfile.TemporaryDirectory(prefix="spm-pack-") as scratch:
        tree = Path(scratch) / "tree"
        shutil.copytree(source / "plugin", tree, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        _build(source, tree)
        files = tuple(_entries(tree))
        manifest = compile_manifest(
            author, registry=registry, publisher=publisher, created=created, files=files, host=host
        )
        _require_entry(manifest)
        return _write(manifest, tree, out)


def plugin_class(source: Path) -> str:
    """Return the class that a source folder's manifest.yaml names, `core` or `ext`.

    Raises: as `pack`.
    """
    value = read_yaml(_author_bytes(source)).get("type")
    if value not in {"core", "ext"}:
        raise TypeMismatch("manifest.yaml is refused: `type` is neither `core` nor `ext`")
    return str(value)


def _author_bytes(source: Path) -> bytes:
    yaml, tree = source / "manifest.yaml", source / "plugin"
    if not yaml.is_file() or not tree.is_dir():
        missing = "plugin/" if yaml.is_file() else "manifest.yaml"
        raise UsageError(
            f"`{source}` is not a plugin's source folder: it has no `{missing}`",
            hint="a source folder holds `manifest.yaml` and the tree `plugin/` that will be installed",
        )
    with yaml.open("rb") as file:
        return file.read(MAX_YAML_BYTES + 1)


def _build(source: Path, tree: Path) -> None:
    script = source / "build.py"
    if not script.is_file():
        return
    command = [sys.executable, str(script.absolute()), str(tree)]
    try:
        done = subprocess.run(
            command, cwd=source, stdin=subprocess.DEVNULL, capture_output=True, timeout=BUILD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise PluginFailed(f"`{script}` did not end within {BUILD_SECONDS} s", reason="build-failed") from error
    if done.returncode:
        said = (done.stderr or done.stdout).decode(errors="replace").strip()[-4000:]
        raise PluginFailed(f"`{script}` failed with status {done.returncode}:\n{said}", reason="build-failed")


def _entries(tree: Path) -> Iterator[FileEntry]:
    for count, path in enumerate(_plain_files(tree)):
        if count == MAX_FILES:
            raise TypeMismatch(f"the plugin has more than {MAX_FILES} files", reason="too-big")
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        yield FileEntry(
            path=_checked(path.relative_to(tree).as_posix()),
            size=status.st_size,
            sha256=digest,
            mode="x" if status.st_mode & stat.S_IXUSR else "r",
        )


def _checked(path: str) -> str:
    try:
        return check_path(path)
    except PathRefused as error:
        raise PathRefused(error.message, hint="rename the file in `plugin/`", **error.context) from error


def _require_plain(tree: Path) -> None:
    """Refuse before anything is copied: reading a pipe or a device may never end."""
    for path in _plain_files(tree):
        if not os.access(path, os.R_OK):
            raise UsageError(f"`{path}` cannot be read")


def _plain_files(tree: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(tree):
        names[:] = sorted(name for name in names if name not in _LEFT_OUT)
        for name in (*names, *sorted(files)):
            path = Path(folder) / name
            if path.is_symlink():
                raise LinkRefused(f"`{path.relative_to(tree)}` is a symbolic link; a release holds plain files only")
            if path.is_file():
                yield path
            elif not path.is_dir():
                raise TypeMismatch(f"`{path.relative_to(tree)}` is not a plain file")


def _require_entry(manifest: Manifest) -> None:
    module = manifest.entry.partition(":")[0].replace(".", "/")
    if not {f"{module}.py", f"{module}/__init__.py"} & {entry.path for entry in manifest.files}:
        raise TypeMismatch(
            f"`entry: {manifest.entry}` names a module that is not in `plugin/`: there is no `{module}.py`"
        )


def _write(manifest: Manifest, tree: Path, out: Path) -> Packed:
    data = manifest.to_bytes()
    folder = out / f"{manifest.name}-{manifest.release}"
    if folder.exists():
        shutil.rmtree(_as_packed_before(folder))
    (folder / "blobs").mkdir(parents=True)
    for entry in manifest.files:
        shutil.copyfile(tree / entry.path, folder / "blobs" / entry.sha256)
    (folder / "manifest.json").write_bytes(data)
    return Packed(folder, manifest, hashlib.sha256(data).hexdigest())


def _as_packed_before(folder: Path) -> Path:
    """Return the folder if it is one that pack made and may replace."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() and not folder.is_symlink() else set()
    foreign = {name for name in names if name not in {"manifest.json", "blobs"} and not is_signature_name(name)}
    if foreign or not {"manifest.json", "blobs"} <= names:
        raise UsageError(f"`{folder}` exists and was not made by `spm pack`; choose another `--out`")
    return folder
