"""Scratch folders: gone with their command, and swept only where their command is certainly dead."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from spm_client.store.layout import Layout
from spm_client.store.staging import is_shared, remove_tree, staging

HOLD = """
import sys, time
from pathlib import Path
from spm_client.store.layout import Layout
from spm_client.store.staging import staging
with staging(Layout(Path(sys.argv[1]))) as scratch:
    (scratch / "part").mkdir()
    print(scratch.name, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(layout: Layout) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Give another command at work in the store, and its folder."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(layout.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield process, layout.tmp / process.stdout.readline().strip()
        process.kill()


def test_the_folder_is_private_and_gone_after_success(layout: Layout) -> None:
    with staging(layout) as scratch:
        (scratch / "a").write_bytes(b"x")

        assert scratch.parent == layout.tmp
        assert scratch.stat().st_mode & 0o777 == 0o700
    assert list(layout.root.iterdir()) == []


def test_the_folder_is_gone_after_a_failure_read_only_parts_included(layout: Layout) -> None:
    def fail(scratch: Path) -> None:
        (scratch / "a").mkdir()
        (scratch / "a" / "b").write_bytes(b"x")
        (scratch / "a").chmod(0o555)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), staging(layout) as scratch:
        fail(scratch)

    assert list(layout.root.iterdir()) == []


def test_two_commands_have_two_folders_and_see_each_other(layout: Layout) -> None:
    with staging(layout) as one:
        assert not is_shared(layout, one)
        with staging(layout) as two:
            assert one != two
            assert is_shared(layout, one / "0")
            assert is_shared(layout, two)
        assert not is_shared(layout, one)


def test_the_folder_of_a_living_command_is_left(layout: Layout, other: tuple[subprocess.Popen[str], Path]) -> None:
    _, folder = other

    with staging(layout):
        pass

    assert (folder / "part").is_dir()


def test_the_folder_of_a_killed_command_is_swept(layout: Layout, other: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = other
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert (folder / "part").is_dir()

    with staging(layout) as scratch:
        assert [scratch] == list(layout.tmp.iterdir())
        assert list(scratch.iterdir()) == []


def owned(layout: Layout) -> tuple[str, str, str, str]:
    """Return the parts of the name of a scratch folder of this process: place, pid, start, chance."""
    with staging(layout) as scratch:
        place, owner, chance = scratch.name.split(".")
    pid, _, started = owner.partition("-")
    return place, pid, started, chance


def test_a_process_id_used_again_is_told_by_its_start(layout: Layout) -> None:
    place, pid, started, chance = owned(layout)
    left = layout.tmp / f"{place}.{pid}-{int(started) - 1}.{chance}"
    left.mkdir(parents=True)

    with staging(layout):
        assert not left.exists()


@pytest.mark.parametrize(
    "name",
    [
        "elsewhere-1.1-1.00000000",
        "{place}0.1-1.00000000",
        "{host}-1.1-1.00000000",
        "{place}.junk",
        "{place}.999999-.00000000",
        "{place}.999999-1",
        "{place}.999999-1.00000000.more",
        "{place}.٩٩٩٩٩٩-1.00000000",
        "kept",
        ".hidden",
    ],
)
def test_what_is_not_certainly_of_a_dead_command_is_left(layout: Layout, name: str) -> None:
    place = owned(layout)[0]
    folder = layout.tmp / name.format(place=place, host=place.rpartition("-")[0])
    folder.mkdir(parents=True)

    with staging(layout) as scratch:
        assert folder.is_dir()
        assert is_shared(layout, scratch)


def test_neither_a_file_nor_what_a_link_names_is_swept(layout: Layout, tmp_path: Path) -> None:
    place = owned(layout)[0]
    kept = tmp_path / "kept"
    (kept / "a").mkdir(parents=True)
    layout.tmp.mkdir(parents=True)
    (layout.tmp / f"{place}.999999-1.00000000").write_bytes(b"")
    (layout.tmp / f"{place}.999999-1.00000001").symlink_to(kept)

    with staging(layout):
        pass

    assert len(list(layout.tmp.iterdir())) == 2
    assert (kept / "a").is_dir()


def test_a_host_name_with_dots_is_swept_too(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "node.team.example")
    place = owned(layout)[0]
    left = layout.tmp / f"{place}.999999-1.00000000"
    left.mkdir(parents=True)

    with staging(layout):
        assert not left.exists()
    assert place.startswith("node-team-example-")


def test_commands_that_sweep_and_leave_at_once_do_not_disturb_each_other(layout: Layout) -> None:
    place, made = owned(layout)[0], layout.root / "made"
    errors: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            for turn in range(40):
                with staging(layout):
                    name = f"{place}.999999-{worker * 1000 + turn}.00000000"
                    (made / name / "a" / "b").mkdir(parents=True)
                    (made / name).rename(layout.tmp / name)
        except BaseException as error:  # noqa: BLE001 - asserted below
            errors.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert errors == []
    with staging(layout) as scratch:
        assert list(layout.tmp.iterdir()) == [scratch]


def test_a_tree_is_removed_without_following_links(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "a").write_bytes(b"x")
    tree = tmp_path / "tree"
    (tree / "deep").mkdir(parents=True)
    (tree / "deep" / "link").symlink_to(kept)
    os.chmod(tree / "deep", 0o500)

    remove_tree(tree)
    remove_tree(tmp_path / "absent")

    assert not tree.exists()
    assert (kept / "a").read_bytes() == b"x"
