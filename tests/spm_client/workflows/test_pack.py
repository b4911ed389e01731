"""Packing: what goes into a release, what is refused, and that the same source gives the same bytes."""

import hashlib
import os
import socket
from pathlib import Path

import pytest

from manifests.errors import LinkRefused, PathRefused, PluginFailed, TypeMismatch, UsageError
from manifests.manifest import Manifest
from tests.spm_client.workflows.sources import packed, write_source

SHAPE = "a source folder holds `manifest.yaml` and the tree `plugin/` that will be installed"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_source(tmp_path / "tone")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "dist"


def test_a_release_is_a_manifest_and_blobs_by_digest(source: Path, out: Path) -> None:
    release = packed(source, out)

    data = (out / "tone-1.0.0" / "manifest.json").read_bytes()
    assert release.folder == out / "tone-1.0.0"
    assert release.sha256 == hashlib.sha256(data).hexdigest()
    assert release.manifest == Manifest.from_bytes(data)
    assert [entry.path for entry in release.manifest.files] == ["data/a.bin", "tone.py"]
    for entry in release.manifest.files:
        assert (release.folder / "blobs" / entry.sha256).read_bytes() == (source / "plugin" / entry.path).read_bytes()
    assert len(list((release.folder / "blobs").iterdir())) == 2


def test_the_same_source_and_moment_give_the_same_bytes(source: Path, tmp_path: Path) -> None:
    os.utime(source / "plugin" / "tone.py", (1, 1))
    one = packed(source, tmp_path / "one")
    os.utime(source / "plugin" / "tone.py", (2, 2))
    two = packed(source, tmp_path / "two")

    assert one.sha256 == two.sha256
    assert one.sha256 != packed(source, tmp_path / "three", created="2026-01-31T12:00:01Z").sha256


def test_packing_again_replaces_the_release_and_drops_its_signature(source: Path, out: Path) -> None:
    first = packed(source, out)
    (first.folder / "manifest.jws").write_bytes(b"old")
    (first.folder / f"manifest.sig.{'ab' * 32}").write_bytes(b"old")
    (source / "plugin" / "tone.py").write_text("def make(context): return 1\n")

    second = packed(source, out)

    assert second.sha256 != first.sha256
    assert sorted(path.name for path in second.folder.iterdir()) == ["blobs", "manifest.json"]
    assert len(list((second.folder / "blobs").iterdir())) == 2


@pytest.mark.parametrize("names", [["thesis.txt"], ["manifest.json", "blobs/a", "thesis.txt"], ["manifest.json"], [""]])
def test_a_folder_that_pack_did_not_make_is_left(source: Path, out: Path, names: list[str]) -> None:
    folder = out / "tone-1.0.0"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name:
            (folder / name).write_bytes(b"kept")
        else:
            folder.mkdir(exist_ok=True)

    with pytest.raises(UsageError) as refused:
        packed(source, out)

    assert refused.value.message == f"`{folder}` exists and was not made by `spm pack`; choose another `--out`"
    assert all((folder / name).exists() for name in names)


def test_a_link_to_a_packed_folder_is_left(source: Path, out: Path, tmp_path: Path) -> None:
    packed(source, tmp_path / "elsewhere")
    out.mkdir()
    (out / "tone-1.0.0").symlink_to(tmp_path / "elsewhere" / "tone-1.0.0")

    with pytest.raises(UsageError, match=r"exists and was not made by `spm pack`; choose another `--out`$"):
        packed(source, out)

    assert (tmp_path / "elsewhere" / "tone-1.0.0" / "manifest.json").is_file()


@pytest.mark.parametrize("missing", ["manifest.yaml", "plugin/"])
def test_a_folder_that_is_no_source_is_refused(source: Path, out: Path, missing: str) -> None:
    os.rename(source / missing, source / "elsewhere")

    with pytest.raises(UsageError) as refused:
        packed(source, out)

    assert (refused.value.message, refused.value.hint) == (
        f"`{source}` is not a plugin's source folder: it has no `{missing}`",
        SHAPE,
    )


def test_a_source_that_is_not_there_is_refused(out: Path) -> None:
    with pytest.raises(UsageError) as refused:
        packed(Path("nowhere"), out)

    assert refused.value.message == "`nowhere` is not a plugin's source folder: it has no `manifest.yaml`"


def test_what_python_and_its_tools_leave_is_left_out(source: Path, out: Path) -> None:
    for name in ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"):
        (source / "plugin" / "data" / name).mkdir()
        (source / "plugin" / "data" / name / "junk.pyc").write_bytes(b"junk")

    assert [entry.path for entry in packed(source, out).manifest.files] == ["data/a.bin", "tone.py"]


@pytest.mark.parametrize(("mode", "written"), [(0o755, "x"), (0o644, "r"), (0o700, "x"), (0o655, "r")])
def test_its_owner_s_executable_bit_is_the_one_that_counts(source: Path, out: Path, mode: int, written: str) -> None:
    (source / "plugin" / "data" / "a.bin").chmod(mode)

    assert packed(source, out).manifest.files[0].mode == written


def test_what_the_build_makes_is_packed_and_the_source_is_left_alone(source: Path, out: Path) -> None:
    (source / "build.py").write_text(
        "import pathlib, sys\n"
        "tree = pathlib.Path(sys.argv[1])\n"
        "(tree / 'made.txt').write_text(pathlib.Path('manifest.yaml').read_text()[:10])\n"
        "(tree / 'tone.pyc').write_bytes(b'')\n"
        "(tree / '__pycache__').mkdir()\n"
        "(tree / '__pycache__' / 'x').write_bytes(b'')\n"
        "(tree / 'data' / 'a.bin').unlink()\n"
    )

    release = packed(source, out)

    assert [entry.path for entry in release.manifest.files] == ["made.txt", "tone.py", "tone.pyc"]
    assert sorted(path.name for path in (source / "plugin").rglob("*")) == ["a.bin", "data", "tone.py"]


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("import sys; sys.exit('no compiler')", 1, "no compiler"),
        ("import sys; print('told on stdout'); sys.exit(3)", 3, "told on stdout"),
        ("import sys; sys.stderr.buffer.write(b'\\xff\\n'); sys.exit(2)", 2, "\N{REPLACEMENT CHARACTER}"),
        ("import os; os.kill(os.getpid(), 9)", -9, ""),
        ("assert input() == ''", 1, None),
    ],
    ids=["stderr", "stdout", "not-utf-8", "killed", "asks"],
)
def test_a_build_that_fails_is_told_with_what_it_said(
    source: Path, out: Path, script: str, status: int, said: str | None
) -> None:
    (source / "build.py").write_text(script)

    with pytest.raises(PluginFailed) as refused:
        packed(source, out)

    first, _, rest = refused.value.message.partition("\n")
    assert (first, refused.value.reason) == (f"`{source / 'build.py'}` failed with status {status}:", "build-failed")
    assert rest == said if said is not None else rest.endswith("EOFError: EOF when reading a line")
    assert not out.exists()


def test_a_link_is_refused_wherever_it_points(source: Path, out: Path) -> None:
    (source / "plugin" / "data" / "b.bin").symlink_to("a.bin")

    with pytest.raises(LinkRefused) as refused:
        packed(source, out)

    assert refused.value.message == "`data/b.bin` is a symbolic link; a release holds plain files only"
    assert not out.exists()


def test_a_link_to_a_folder_and_one_that_the_build_makes_are_refused(source: Path, out: Path) -> None:
    (source / "build.py").write_text("import os, sys; os.symlink('/etc', sys.argv[1] + '/etc')")

    with pytest.raises(LinkRefused) as refused:
        packed(source, out)

    assert refused.value.message == "`etc` is a symbolic link; a release holds plain files only"


def test_a_pipe_is_refused_before_anything_reads_it(source: Path, out: Path) -> None:
    os.mkfifo(source / "plugin" / "pipe")

    with pytest.raises(TypeMismatch) as refused:
        packed(source, out)

    assert refused.value.message == "`pipe` is not a plain file"


def test_a_socket_is_refused(source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source / "plugin")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")

        with pytest.raises(TypeMismatch) as refused:
            packed(source, out)

    assert refused.value.message == "`s` is not a plain file"


def test_a_file_name_that_no_manifest_may_hold_is_refused(source: Path, out: Path) -> None:
    (source / "plugin" / "a b").write_bytes(b"")

    with pytest.raises(PathRefused) as refused:
        packed(source, out)

    assert refused.value.message == (
        "the path 'a b' is refused: each part is 1 to 200 characters of A-Z a-z 0-9 . _ + - and is neither `.` nor `..`"
    )


@pytest.mark.parametrize(("entry", "module"), [("nothing:make", "nothing"), ("data.tone:make", "data/tone")])
def test_an_entry_whose_module_is_not_there_is_refused(tmp_path: Path, out: Path, entry: str, module: str) -> None:
    source = write_source(tmp_path / "other", entry=entry)

    with pytest.raises(TypeMismatch) as refused:
        packed(source, out)

    assert refused.value.message == (
        f"`entry: {entry}` names a module that is not in `plugin/`: there is no `{module}.py`"
    )


def test_an_entry_may_be_a_package(tmp_path: Path, out: Path) -> None:
    source = write_source(tmp_path / "other", entry="data:make")
    (source / "plugin" / "data" / "__init__.py").write_text("def make(context): ...\n")

    assert packed(source, out).manifest.entry == "data:make"


def test_a_manifest_beyond_its_bound_is_refused(source: Path, out: Path) -> None:
    with (source / "manifest.yaml").open("a") as file:
        file.write("#" * 70_000)

    with pytest.raises(TypeMismatch) as refused:
        packed(source, out)

    assert refused.value.message == "manifest.yaml has 65537 bytes, more than the 65536 allowed"
