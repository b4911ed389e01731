"""A project's folder: how it is found, what is refused in it, and that both files are written or neither."""

import errno
import json
import os
from functools import partial
from pathlib import Path

import pytest

from manifests.errors import ConfigSyntax, LimitReached, LockMissing, TooBig, TypeMismatch, UsageError
from manifests.project import MAX_PROJECT_BYTES
from spm_client.adapters.project_files import ProjectFolder, find_project, target_digest
from spm_client.workflows.project import begin_project, target_name
from tests.e2e.snapshots import unchanged
from tests.manifests.builders import refused
from tests.spm_client.workflows.team_project import CPU, GPU

TOML = '[project]\nname = "speech"\n[targets]\nhere = "here.json"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "spm.toml").write_text(TOML)
    (tmp_path / "here.json").write_text(json.dumps(CPU.to_dict()))
    return tmp_path


def test_the_nearest_project_above_is_found(folder: Path) -> None:
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)

    assert find_project(inner) == folder
    (folder / "a" / "spm.toml").write_text(TOML)
    assert find_project(inner) == folder / "a"


def test_a_folder_without_spm_toml_is_no_project(tmp_path: Path) -> None:
    assert refused(lambda: ProjectFolder.open(tmp_path), LockMissing) == (
        f"`{tmp_path}` is no project: there is no spm.toml"
    )


def test_a_project_has_its_targets_and_no_lock_yet(folder: Path) -> None:
    project = ProjectFolder.open(folder)

    assert dict(project.targets) == {"here": CPU}
    assert project.lock is None
    assert refused(project.require_lock, LockMissing) == f"`{folder}` has no spm.lock"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "the target `here` is to be in `{path}`, which is not there"),
        (b"{", "the target `here` in `{path}` is not JSON: Expecting property name enclosed in double quotes: "),
        (
            b'{"os": "linux", "os": "linux"}',
            "the target `here` in `{path}` is not JSON: it has the member 'os' twice in one table",
        ),
        (b"{}", "the target `here` in `{path}`: the target is refused: `_type` is missing; "),
    ],
)
def test_a_target_that_cannot_be_read_is_told_with_its_file(folder: Path, data: bytes | None, message: str) -> None:
    path = folder / "here.json"
    path.unlink()
    if data is not None:
        path.write_bytes(data)

    with pytest.raises((UsageError, TypeMismatch)) as caught:
        _ = ProjectFolder.open(folder).targets

    assert caught.value.message.startswith(message.format(path=path))
    assert caught.value.hint == f"`spm target probe -o {path}` on that host writes it"


def test_what_is_no_text_or_no_file_or_too_big_is_refused(folder: Path) -> None:
    (folder / "spm.toml").write_bytes(b"\xff")
    assert refused(lambda: ProjectFolder.open(folder), ConfigSyntax).startswith("spm.toml is not UTF-8: ")

    (folder / "spm.toml").write_bytes(b"#" * (MAX_PROJECT_BYTES + 1))
    assert refused(lambda: ProjectFolder.open(folder), TooBig) == (
        f"`{folder / 'spm.toml'}` has more than the 1048576 bytes allowed"
    )

    (folder / "spm.toml").unlink()
    os.mkfifo(folder / "spm.toml")
    assert refused(lambda: ProjectFolder.open(folder), UsageError) == f"`{folder / 'spm.toml'}` is no file"


def test_a_targets_digest_does_not_depend_on_its_spacing(folder: Path) -> None:
    (folder / "here.json").write_text(json.dumps(CPU.to_dict(), indent=9, sort_keys=True))

    assert target_digest(ProjectFolder.open(folder).targets["here"]) == target_digest(CPU)
    assert target_digest(GPU) != target_digest(CPU)


def test_both_files_are_written_through_links_and_nothing_else_is_left(folder: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.toml"
    (folder / "spm.toml").rename(real)
    (folder / "spm.toml").symlink_to(real)

    ProjectFolder.open(folder).replace(text=TOML + "# more\n", lock=b"{}")

    assert (folder / "spm.toml").is_symlink()
    assert real.read_text() == TOML + "# more\n"
    assert sorted(path.name for path in folder.iterdir()) == ["elsewhere.toml", "here.json", "spm.lock", "spm.toml"]


def test_a_failure_before_the_renames_changes_nothing(folder: Path) -> None:
    project = ProjectFolder.open(folder)

    with unchanged(folder), pytest.raises(UsageError, match="no"), project.changing(text="x", lock=b"{}"):
        raise UsageError("no")


def test_a_lock_is_put_back_where_spm_toml_cannot_follow(folder: Path) -> None:
    (folder / "spm.lock").write_bytes(b"{}")
    project = ProjectFolder.open(folder)

    with project.changing(text=TOML + "#", lock=b"{ }") as change:
        (folder / "spm.toml").unlink()
        (folder / "spm.toml").mkdir()
        message = refused(change.put, UsageError)

    assert message == f"`{folder}/spm.toml` cannot be written: Is a directory"
    assert (folder / "spm.lock").read_bytes() == b"{}"
    assert sorted(path.name for path in folder.iterdir()) == ["here.json", "spm.lock", "spm.toml"]


def test_a_file_keeps_its_mode(folder: Path) -> None:
    (folder / "spm.lock").write_bytes(b"{}")
    (folder / "spm.toml").chmod(0o600)
    (folder / "spm.lock").chmod(0o664)

    ProjectFolder.open(folder).replace(text=TOML + "#", lock=b"{ }")

    assert [(folder / name).stat().st_mode & 0o777 for name in ("spm.toml", "spm.lock")] == [0o600, 0o664]


def test_a_full_disk_is_told_by_the_file_of_the_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)

    with unchanged(folder), pytest.raises(LimitReached) as caught:
        ProjectFolder.open(folder).replace(lock=b"{}")

    assert caught.value.message == f"the disk under `{folder}` is full; `spm.lock` was not written"
    assert (caught.value.reason, caught.value.context) == ("limit:disk", {"path": str(folder / "spm.lock")})


def test_a_project_that_cannot_be_begun_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    begin = partial(begin_project, tmp_path / "a" / "new", "speech", CPU, called="here", registry=None)

    with unchanged(tmp_path):
        message = refused(begin, LimitReached)

    assert message == f"the disk under `{tmp_path}/a/new/targets` is full; `here.json` was not written"


def test_what_editors_and_merges_leave_behind_is_named(folder: Path) -> None:
    lines = TOML.splitlines(keepends=True)
    (folder / "spm.toml").write_text("".join([*lines[:2], "<<<<<<< HEAD\n", *lines[2:]]))
    assert refused(lambda: ProjectFolder.open(folder), ConfigSyntax) == (
        "spm.toml has the conflict markers of a merge in it, from line 3 on"
    )

    (folder / "spm.toml").write_bytes(b"\xef\xbb\xbf" + TOML.encode())
    assert refused(lambda: ProjectFolder.open(folder), ConfigSyntax) == (
        "spm.toml begins with a byte order mark, which does not belong in it"
    )

    (folder / "spm.toml").write_text(TOML)
    (folder / "here.json").write_bytes(b"\xef\xbb\xbf{}")
    assert refused(lambda: ProjectFolder.open(folder).targets, UsageError) == (
        f"the target `here` in `{folder}/here.json` begins with a byte order mark, which does not belong in it"
    )

    (folder / "spm.lock").symlink_to("nowhere.lock")
    assert refused(lambda: ProjectFolder.open(folder), UsageError) == (
        f"`{folder}/spm.lock` is a link to `nowhere.lock`, which is not there"
    )


def test_a_project_is_begun_with_this_host(tmp_path: Path) -> None:
    path = begin_project(tmp_path / "new", "speech", CPU, called="linux-x86_64", registry="team.example")

    project = ProjectFolder.open(tmp_path / "new")
    assert path == tmp_path / "new" / "targets" / "linux-x86_64.json"
    assert (project.project.name, project.project.registry) == ("speech", "team.example")
    assert dict(project.targets) == {"linux-x86_64": CPU}


def test_another_target_document_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    (tmp_path / "targets" / "here.json").write_text("mine")

    with unchanged(tmp_path):
        message = refused(lambda: begin_project(tmp_path, "speech", CPU, called="here", registry=None), UsageError)

    assert message == f"`{tmp_path}/targets/here.json` is there already"


def test_a_target_name_that_is_none_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with unchanged(tmp_path):
        message = refused(lambda: begin_project(tmp_path, "speech", CPU, called="../up", registry=None), UsageError)

    assert message == "'../up' is not a target's name: 1 to 64 of a-z, 0-9, `.`, `_` and `-`"


def test_a_host_is_called_by_what_it_is() -> None:
    assert (target_name(CPU), target_name(GPU)) == ("linux-x86_64", "linux-x86_64-sm_86")
