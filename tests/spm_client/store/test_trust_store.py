"""What the store remembers of its registry: committed whole or not at all, the newer kept, two states at most."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keys.trust_state import TrustState, read_trust_state
from manifests.errors import ContentError, LimitReached, Undecided
from spm_client.store.layout import Layout
from spm_client.store.trust_store import cached, committing, newer

PIN = "ab" * 32


def state(timestamp: int, *, root: int = 1, serial: int = 1, imported: int | None = None, pin: str = PIN) -> TrustState:
    """Return a state with these versions; the store looks at nothing else."""

    def metadata(version: int) -> str:
        return json.dumps({"signed": {"version": version}})

    return TrustState(
        registry="team.example",
        root_sha256=pin,
        roots=tuple(metadata(version) for version in range(1, root + 1)),
        timestamp=metadata(timestamp),
        snapshot=metadata(timestamp),
        targets=metadata(1),
        keyring=json.dumps({"serial": serial}),
        imported_targets=metadata(imported) if imported else None,
        imported_keyring=json.dumps({"serial": imported}) if imported else None,
    )


def scratch_in(layout: Layout) -> Path:
    scratch = layout.tmp / os.urandom(8).hex()
    scratch.mkdir(parents=True)
    return scratch


def commit(layout: Layout, wanted: TrustState, **cache: bytes) -> None:
    scratch = scratch_in(layout)
    for name, data in cache.items():
        (scratch / name).write_bytes(data)
    with committing(layout, wanted, {f"{name}.json": scratch / name for name in cache}, scratch=scratch):
        pass


def version_of(held: TrustState | None) -> int:
    return int(json.loads(held.timestamp)["signed"]["version"]) if held and held.timestamp else 0


def files(layout: Layout) -> list[str]:
    return sorted(str(path.relative_to(layout.trust)) for path in layout.trust.rglob("*") if path.is_file())


def test_a_state_is_kept_and_read_again(layout: Layout) -> None:
    commit(layout, state(1))

    assert read_trust_state(layout.root) == state(1)
    assert files(layout) == ["000001.json"]


def test_the_same_state_is_not_written_again(layout: Layout) -> None:
    commit(layout, state(1))
    commit(layout, state(1))

    assert files(layout) == ["000001.json"]


def test_the_newest_two_stay(layout: Layout) -> None:
    for version in range(1, 6):
        commit(layout, state(version))

    assert files(layout) == ["000004.json", "000005.json"]
    assert read_trust_state(layout.root) == state(5)


def test_a_block_that_ends_in_an_error_takes_its_state_back(layout: Layout, tmp_path: Path) -> None:
    seen = []

    def interrupted() -> None:
        with committing(layout, state(1), {}, scratch=tmp_path):
            seen.append(read_trust_state(layout.root))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()

    assert seen == [state(1)]
    assert read_trust_state(layout.root) is None
    assert not layout.trust.exists()


def test_a_block_that_ends_in_an_error_leaves_what_was_there(layout: Layout, tmp_path: Path) -> None:
    commit(layout, state(1), beta=b"before")
    (tmp_path / "beta").write_bytes(b"after")

    with (
        pytest.raises(OSError, match="disk"),
        committing(layout, state(2), {"beta.json": tmp_path / "beta"}, scratch=tmp_path),
    ):
        raise OSError("disk")

    assert files(layout) == ["000001.json", "cache/beta.json"]
    assert cached(layout, "beta.json", 100) == b"before"


def test_a_command_that_learnt_less_than_another_keeps_what_the_other_learnt(layout: Layout) -> None:
    commit(layout, state(7))
    commit(layout, state(6))

    assert read_trust_state(layout.root) == state(7)
    assert files(layout) == ["000001.json"]


def test_a_newer_root_counts_more_than_a_newer_timestamp() -> None:
    """A root that replaces stolen online keys may begin again with lower versions."""
    assert newer(state(900), state(1, root=2)) == state(1, root=2)


def test_another_pin_begins_anew() -> None:
    assert newer(state(900, root=3), state(1, pin="cd" * 32)) == state(1, pin="cd" * 32)


@pytest.mark.parametrize(("held", "ours"), [(2, 5), (5, 2), (None, 5), (5, None)])
def test_what_was_imported_meanwhile_is_not_lost(held: int | None, ours: int | None) -> None:
    found = newer(state(1, imported=held), state(2, imported=ours))

    assert found == state(2, imported=5)


def test_commands_at_once_all_succeed_and_the_newest_stands(layout: Layout) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda version: commit(layout, state(version)), range(1, 25)))

    assert read_trust_state(layout.root) == state(24)
    assert 1 <= len(files(layout)) <= 8


def test_what_one_command_has_kept_stays_where_another_takes_its_own_back(layout: Layout) -> None:
    """The first is within its block while the second finds an equal state, and reports success."""
    first = committing(layout, state(1), {}, scratch=scratch_in(layout))
    first.__enter__()
    commit(layout, state(1))
    assert not first.__exit__(OSError, OSError("disk"), None)

    assert read_trust_state(layout.root) == state(1)
    assert files(layout) == ["000002.json"]


def test_what_one_command_has_kept_stays_whoever_comes_between(layout: Layout) -> None:
    """Two that take theirs back lie above it, and it removes what is below itself only."""
    first = committing(layout, state(1), {}, scratch=scratch_in(layout))
    first.__enter__()
    others = [committing(layout, state(1), {}, scratch=scratch_in(layout)) for _ in range(3)]
    for other in others:
        other.__enter__()
    first.__exit__(None, None, None)
    for other in others:
        assert not other.__exit__(OSError, OSError("disk"), None)

    assert read_trust_state(layout.root) == state(1)
    assert files(layout) == ["000001.json"]


def test_what_a_killed_command_had_linked_stays(layout: Layout) -> None:
    """Its scratch is swept, and with that its state is as any other."""
    scratch = scratch_in(layout)
    killed = committing(layout, state(1), {}, scratch=scratch)
    killed.__enter__()
    shutil.rmtree(scratch)

    commit(layout, state(1))

    assert files(layout) == ["000001.json"]
    del killed


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_in_any_order_of_commands_what_was_reported_as_kept_stays(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        layout = Layout(Path(folder))
        running: list[AbstractContextManager[None]] = []
        versions: list[int] = []
        kept = 0
        for step in range(data.draw(st.integers(1, 12))):
            is_ending: bool = data.draw(st.booleans(), label=f"end {step}")
            if running and is_ending:
                place = data.draw(st.integers(0, len(running) - 1))
                block, version = running.pop(place), versions.pop(place)
                if data.draw(st.booleans(), label="succeeds"):
                    block.__exit__(None, None, None)
                    kept = max(kept, version)
                else:
                    block.__exit__(OSError, OSError("disk"), None)
            else:
                versions.append(data.draw(st.integers(1, 3)))
                running.append(committing(layout, state(versions[-1]), {}, scratch=scratch_in(layout)))
                running[-1].__enter__()
            assert version_of(read_trust_state(layout.root)) >= kept
        for block in running:
            block.__exit__(OSError, OSError("disk"), None)

        assert version_of(read_trust_state(layout.root)) >= kept
        assert kept or not layout.trust.exists()


def test_of_commands_at_once_that_fail_or_not_the_kept_stay(layout: Layout) -> None:
    """Eight at a time wait for each other within their blocks; then every second fails."""
    together = Barrier(8)

    def one(number: int) -> None:
        with suppress(OSError), committing(layout, state(1 + number // 8), {}, scratch=scratch_in(layout)):
            together.wait(30)
            if number % 2:
                raise OSError("disk")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(32)))

    assert read_trust_state(layout.root) == state(4)


@pytest.mark.parametrize("damage", ["empty", "folder", "cut", "fifo"])
def test_a_damaged_newest_state_is_refused_with_the_way_out(layout: Layout, damage: str) -> None:
    commit(layout, state(1))
    commit(layout, state(2))
    path = layout.trust_state(2)
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "fifo":
        os.mkfifo(path)
    else:
        path.write_bytes(b"" if damage == "empty" else state(2).to_bytes()[:100])
    before = files(layout)

    with pytest.raises((ContentError, Undecided)) as refused:
        commit(layout, state(3))

    assert files(layout) == before
    assert f"`{path}`" in refused.value.hint
    assert "`spm trust init`" in refused.value.hint

    with committing(layout, state(3), {}, scratch=scratch_in(layout), is_anew=True):
        pass
    assert read_trust_state(layout.root) == state(3)
    for version in range(4, 7):
        commit(layout, state(version))
    assert read_trust_state(layout.root) == state(6)


def test_a_file_of_the_cache_that_is_too_big_or_a_link_is_not_there(layout: Layout) -> None:
    commit(layout, state(1), beta=b"12345")
    (layout.trust_cache / "link.json").symlink_to(layout.trust_cache / "beta.json")

    assert cached(layout, "beta.json", 5) == b"12345"
    assert cached(layout, "beta.json", 4) is None
    assert cached(layout, "link.json", 5) is None
    assert cached(layout, "other.json", 5) is None


def test_numbers_that_are_used_up_are_a_limit(layout: Layout) -> None:
    commit(layout, state(1))
    layout.trust_state(1).rename(layout.trust_state(999_999))

    with pytest.raises(LimitReached) as refused:
        commit(layout, replace(state(2)))

    assert refused.value.message == "the store has used all 999999 numbers of trust states"
    assert refused.value.reason == "limit:trust-states"
