"""SIGKILL before each single change that gc and uninstall make: what is installed stays whole, and a rerun finishes."""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from manifests.names import PluginName
from runtime.generation import current_generation
from spm_client.store.generations import point_at_newest
from spm_client.store.layout import Layout
from spm_client.store.staging import staging
from spm_client.workflows.gc import gc
from spm_client.workflows.place import is_sound
from spm_client.workflows.uninstall import uninstall
from tests.e2e.snapshots import Snapshot, snapshot
from tests.spm_client.workflows.test_gc import MOMENT, NOW, Store

CHANGES = {"os.link", "os.mkdir", "os.rename", "os.rmdir", "os.remove", "os.chmod"}
NAME = PluginName("audio-encoder")


def killed_at(change: int, layout: Layout, act: Callable[[Layout], object]) -> bool:
    """Act in a child that dies before its nth change in the store; tell whether it came so far."""
    child = os.fork()
    if child == 0:
        count = 0

        def watch(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal count
            is_write = event == "open" and isinstance(arguments[2], int) and bool(arguments[2] & os.O_ACCMODE)
            if (is_write or event in CHANGES) and str(arguments[0]).startswith(str(layout.root)):
                count += 1
                if count == change:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        act(layout)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


def content(layout: Layout) -> Snapshot:
    return {path: value for path, value in snapshot(layout.root).items() if value[0] != "folder"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "store").mkdir()
    store = Store(Layout(tmp_path / "store"))
    store.install("1.0.0", "2.0.0", "3.0.0")
    return store


def copies(store: Store, act: Callable[[Layout], object]) -> list[Layout]:
    """Return a store for each change, in which the act was killed just before it."""
    found: list[Layout] = []
    while True:
        layout = Layout(store.layout.root.with_name(f"store-{len(found) + 1}"))
        shutil.copytree(store.layout.root, layout.root)
        if not killed_at(len(found) + 1, layout, act):
            return found
        found.append(layout)


def test_a_gc_killed_before_any_of_its_changes_is_finished_by_the_next(store: Store) -> None:
    def act(layout: Layout) -> object:
        return gc(layout, keep=1, now=NOW)

    dead = copies(store, act)

    act(store.layout)
    final = content(store.layout)
    assert len(dead) > 10
    for layout in dead:
        assert is_sound(layout, store.releases[-1])
        assert [str(entry.version) for entry in current_generation(layout.root).plugins] == ["3.0.0"]
        act(layout)
        assert content(layout) == final
        assert not layout.tmp.exists()


def test_an_uninstall_killed_before_any_of_its_changes_leaves_the_old_or_the_new_state(store: Store) -> None:
    def act(layout: Layout) -> object:
        return uninstall((NAME,), layout, created=MOMENT)

    dead = copies(store, act)

    act(store.layout)
    gc(store.layout, keep=1, now=NOW)
    final = content(store.layout)
    states = []
    for layout in dead:
        is_installed = current_generation(layout.root).find(NAME) is not None
        states.append(is_installed)
        assert not is_installed or is_sound(layout, store.releases[-1])
        with staging(layout) as scratch:
            point_at_newest(layout, scratch=scratch)
        if current_generation(layout.root).find(NAME) is not None:
            act(layout)
        gc(layout, keep=1, now=NOW)
        assert content(layout) == final
        assert not layout.tmp.exists()
    assert states == sorted(states, reverse=True)
    assert set(states) == {True, False}
