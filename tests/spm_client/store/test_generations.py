"""Generations: one winner a number, a killed commit finished, `current` at the newest whatever the order."""

import itertools
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manifests.errors import FileSetMismatch, LimitReached, LinkRefused
from manifests.lockfile import MAX_GENERATION_BYTES, Generation, InstalledEntry
from manifests.names import PluginName
from manifests.parts import PluginType
from manifests.versions import Version
from spm_client.store.generations import NumberTaken, commit, damage_beyond, point_at_newest, read_current
from spm_client.store.layout import Layout, write_scratch
from spm_client.store.staging import staging
from tests.e2e.snapshots import snapshot

MOMENT = "2026-01-31T12:00:00Z"
LOST = "restore the folder from a backup, or remove `current` to begin from the newest that is there"


def generation(number: int, *names: str) -> Generation:
    return Generation(number=number, registry="team.example", created=MOMENT, plugins=tuple(map(plugin, names)))


def plugin(name: str) -> InstalledEntry:
    return InstalledEntry(
        name=PluginName(name),
        version=Version.parse("1.0.0"),
        release="1.0.0",
        manifest_sha256="ab" * 32,
        type=PluginType.EXT,
        keyids=("cd" * 32,),
        requested=True,
    )


def test_a_store_without_generations_is_number_0_of_its_registry(layout: Layout) -> None:
    empty = read_current(layout, "team.example")

    assert (empty.number, empty.registry, empty.plugins) == (0, "team.example", ())


def test_what_was_committed_is_current(layout: Layout, scratch: Path) -> None:
    commit(layout, generation(1, "beta"), scratch=scratch)

    assert read_current(layout, "team.example") == generation(1, "beta")
    assert layout.current.read_bytes() == b"000001\n"
    assert layout.generation(1).stat().st_mode & 0o777 == 0o644


def test_a_number_is_taken_once(layout: Layout, scratch: Path) -> None:
    commit(layout, generation(1, "beta"), scratch=scratch)

    with pytest.raises(NumberTaken):
        commit(layout, generation(1, "alpha"), scratch=scratch)

    assert read_current(layout, "team.example") == generation(1, "beta")


def test_a_commit_killed_before_current_is_finished_by_the_next_command(layout: Layout, scratch: Path) -> None:
    commit(layout, generation(1), scratch=scratch)
    os.link(write_scratch(generation(2, "beta").to_bytes(), scratch=scratch), layout.generation(2))
    assert read_current(layout, "team.example") == generation(1)

    point_at_newest(layout, scratch=scratch)

    assert read_current(layout, "team.example") == generation(2, "beta")


def test_a_first_commit_killed_before_current_is_finished_too(layout: Layout, scratch: Path) -> None:
    layout.generations.mkdir()
    os.link(write_scratch(generation(1, "beta").to_bytes(), scratch=scratch), layout.generation(1))

    point_at_newest(layout, scratch=scratch)

    assert read_current(layout, "team.example") == generation(1, "beta")


def test_nothing_is_written_where_nothing_was_installed(layout: Layout, scratch: Path) -> None:
    point_at_newest(layout, scratch=scratch)

    assert not layout.current.exists()


@pytest.mark.parametrize("text", [b"", b"one", b"000001\n\n", b"\xff\xfe", b"0" * 4000, "٠٠٠٠٠٢\n".encode()])
def test_a_damaged_current_is_mended_from_the_generations(layout: Layout, scratch: Path, text: bytes) -> None:
    commit(layout, generation(1), scratch=scratch)
    commit(layout, generation(2, "beta"), scratch=scratch)
    layout.current.write_bytes(text)

    point_at_newest(layout, scratch=scratch)

    assert layout.current.read_bytes() == b"000002\n"


@pytest.mark.parametrize("text", [b"000003\n", b"garbage"])
def test_generations_that_are_lost_are_not_passed_over(layout: Layout, scratch: Path, text: bytes) -> None:
    layout.generations.mkdir()
    layout.current.write_bytes(text)

    with pytest.raises(FileSetMismatch) as refused:
        point_at_newest(layout, scratch=scratch)

    assert (refused.value.message, refused.value.hint) == (
        f"`{layout.current}` names a generation that is not in `{layout.generations}`: the store lost what it had",
        LOST,
    )
    assert layout.current.read_bytes() == text


def test_the_newest_generation_lost_is_no_silent_rollback(layout: Layout, scratch: Path) -> None:
    commit(layout, generation(1), scratch=scratch)
    commit(layout, generation(2, "beta"), scratch=scratch)
    layout.generation(2).unlink()

    with pytest.raises(FileSetMismatch):
        point_at_newest(layout, scratch=scratch)

    assert layout.current.read_bytes() == b"000002\n"


@pytest.mark.parametrize("is_followed", [False, True])
@pytest.mark.parametrize("kind", ["damaged", "another's", "folder", "link", "dangling", "pipe", "too big"])
def test_a_damaged_generation_is_never_made_current(
    layout: Layout, scratch: Path, kind: str, is_followed: bool
) -> None:
    commit(layout, generation(1, "beta"), scratch=scratch)
    path = layout.generation(2)
    why = spoil(path, kind, layout)
    if is_followed:
        layout.current.write_bytes(b"damaged")
    before = snapshot(layout.root)

    with pytest.raises(FileSetMismatch) as refused:
        point_at_newest(layout, scratch=scratch)

    assert (refused.value.message, refused.value.hint) == (
        f"`{path}` is the newest generation, but damaged, and cannot be made current: {why}; nothing was changed",
        f"restore it from a backup, or remove it (`rm -r {path}`): what is installed now is whole, `spm list` shows it",
    )
    assert snapshot(layout.root) == before


def spoil(path: Path, kind: str, layout: Layout) -> str:
    """Put there what is no generation; return what is said of it."""
    if kind == "damaged":
        path.write_bytes(b"{")
        why = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
        return f"the generation file is not JSON: {why}"
    if kind == "another's":
        path.write_bytes(generation(1, "beta").to_bytes())
        return f"{path} is of generation 1, not of 2"
    if kind == "too big":
        path.touch()
        os.truncate(path, MAX_GENERATION_BYTES + 1)
        return f"{path} has more than the {MAX_GENERATION_BYTES} bytes allowed"
    if kind in ("link", "dangling"):
        path.symlink_to(layout.generation(1) if kind == "link" else "nowhere")
        return f"{path} is a symbolic link, the store has none"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    return f"{path} is no plain file"


def test_what_is_damaged_beyond_a_commit_does_not_undo_it(layout: Layout, scratch: Path) -> None:
    commit(layout, generation(1), scratch=scratch)
    layout.generation(3).write_bytes(b"")

    commit(layout, generation(2, "beta"), scratch=scratch)

    assert read_current(layout, "team.example") == generation(2, "beta")
    assert damage_beyond(layout) is not None


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_for_the_generations_does_not_count_as_none(layout: Layout, scratch: Path, is_dangling: bool) -> None:
    layout.generations.symlink_to(layout.root / ("nowhere" if is_dangling else "tmp"))

    with pytest.raises(LinkRefused) as refused:
        point_at_newest(layout, scratch=scratch)

    assert refused.value.message == f"{layout.generations} is a symbolic link, the store has none"
    assert not layout.current.exists()


@pytest.mark.parametrize("name", ["000009.json~", "000009.jsom", "00009.json", "٠٠٠٠٠٩.json", "current", ".000009"])
def test_other_files_among_the_generations_do_not_count(layout: Layout, scratch: Path, name: str) -> None:
    commit(layout, generation(1), scratch=scratch)
    (layout.generations / name).write_bytes(b"")

    point_at_newest(layout, scratch=scratch)

    assert layout.current.read_bytes() == b"000001\n"


def test_the_last_number_is_the_last(layout: Layout, scratch: Path) -> None:
    with pytest.raises(LimitReached) as refused:
        commit(layout, generation(1_000_000), scratch=scratch)

    assert (refused.value.message, refused.value.reason) == (
        "the store has used all 999999 generation numbers",
        "limit:generations",
    )
    assert not layout.generations.exists()


@pytest.mark.property
@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=24))
def test_any_interleaving_of_committers_ends_at_the_highest_with_all_readable(order: list[int]) -> None:
    """Each committer looks, then creates its number, then moves `current`; steps interleave as drawn."""
    with tempfile.TemporaryDirectory() as folder:
        layout, scratch = Layout(Path(folder)), Path(folder)
        layout.generations.mkdir()
        seen: dict[int, int] = {}
        for who in order:
            if who not in seen:
                seen[who] = read_current(layout, "team.example").number
                continue
            try:
                commit(layout, generation(seen.pop(who) + 1, f"plugin-{who}"), scratch=scratch)
            except NumberTaken:
                continue

        numbers = sorted(int(path.stem) for path in layout.generations.iterdir())
        assert numbers == list(range(1, len(numbers) + 1))
        assert read_current(layout, "team.example").number == len(numbers)
        for number in numbers:
            assert Generation.from_bytes(layout.generation(number).read_bytes()).number == number


def commit_many(layout: Layout, count: int, name: str) -> None:
    """Commit until `count` of ours are in, planning again when a number is taken."""
    done = 0
    with staging(layout) as scratch:
        while done < count:
            point_at_newest(layout, scratch=scratch)
            base = read_current(layout, "team.example")
            try:
                commit(
                    layout,
                    base.following(created=MOMENT, plugins=(*base.plugins, plugin(f"{name}{done}"))),
                    scratch=scratch,
                )
            except NumberTaken:
                continue
            done += 1


def require_all_are_in(layout: Layout, names: set[str]) -> None:
    assert layout.current.read_bytes() == f"{len(names):06}\n".encode()
    assert {entry.name for entry in read_current(layout, "team.example").plugins} == names
    for number in range(1, len(names) + 1):
        assert len(Generation.from_bytes(layout.generation(number).read_bytes()).plugins) == number


def test_threads_that_commit_at_once_lose_nothing(layout: Layout) -> None:
    workers = [threading.Thread(target=commit_many, args=(layout, 8, name)) for name in "abcd"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    require_all_are_in(layout, {f"{name}{number}" for name, number in itertools.product("abcd", range(8))})


COMMIT_MANY = """
import sys
from pathlib import Path
from spm_client.store.layout import Layout
from tests.spm_client.store.test_generations import commit_many
commit_many(Layout(Path(sys.argv[1])), 8, sys.argv[2])
"""


def test_processes_that_commit_at_once_lose_nothing(layout: Layout) -> None:
    repository = Path(__file__).parents[3]
    workers = [
        subprocess.Popen([sys.executable, "-c", COMMIT_MANY, str(layout.root), name], cwd=repository) for name in "abc"
    ]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]

    require_all_are_in(layout, {f"{name}{number}" for name, number in itertools.product("abc", range(8))})
