"""bubblewrap's command line as data."""

import json
import os
import sys
from pathlib import Path

import pytest

from runtime.sandbox import view as views
from runtime.sandbox.bwrap import Bind, Bubblewrap, Command, Identity, View, command, find
from runtime.sandbox.view import view_of

BWRAP = Bubblewrap(path=Path("/opt/b/bin/bwrap"), folder=Path("/opt/b"))
VIEW = View(
    binds=(
        Bind(source="/opt/base", target="/opt/base"),
        Bind(source="/opt/base/home/venv", target="/opt/base/home/venv"),
        Bind(source="/srv/store/plugins/enc/1.0.0", target="/spm/plugins/enc"),
    ),
    links=(("usr/lib", "/lib"),),
    masks=("/opt/base/home",),
    environment={"HOME": "/tmp"},
)
WALLS = (
    "--unshare-user --unshare-pid --as-pid-1 --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup "
    "--disable-userns --new-session --die-with-parent --cap-drop ALL --clearenv --uid 65534 --gid 65534 "
    "--hostname spm-worker "
    "--proc /proc --dev /dev --size 67108864 --tmpfs /dev/shm --remount-ro /dev --size 268435456 --tmpfs /tmp "
)


def options(command: Command) -> list[str]:
    return command.hidden.decode().split("\0")


def test_the_options_have_every_wall_and_outer_folders_before_inner_ones() -> None:
    start = command(BWRAP, VIEW, ["python", "-c", "x"], None)

    assert start.words(7) == ["/opt/b/bin/bwrap", "--args", "7", "--", "python", "-c", "x"]
    assert " ".join(options(start)) == (
        f"{WALLS}"
        "--ro-bind /opt/base /opt/base --ro-bind /srv/store/plugins/enc/1.0.0 /spm/plugins/enc "
        "--tmpfs /opt/base/home "
        "--ro-bind /opt/base/home/venv /opt/base/home/venv "
        "--symlink usr/lib /lib --setenv HOME /tmp --remount-ro /opt/base/home --remount-ro / --chdir /tmp"
    )


def test_no_wall_is_asked_for_in_a_form_that_hides_its_absence() -> None:
    words = options(command(BWRAP, VIEW, ["python"], None))

    assert [word for word in words if word == "--unshare-all" or word.endswith("-try")] == []


def test_a_root_host_drops_its_uid_before_bubblewrap_and_stages_what_the_worker_sees() -> None:
    start = command(BWRAP, VIEW, ["python"], Identity(uid=65534, gid=65534))

    plan = json.loads(start.hidden)
    assert start.before[:4] == (sys.executable, "-I", "-S", "-B")
    assert start.before[4].endswith("/runtime/sandbox/drop_root.py")
    assert start.after == ("--", "python")
    assert {name: plan[name] for name in ("uid", "gid", "stage", "sources", "binary")} == {
        "uid": 65534,
        "gid": 65534,
        "stage": "/tmp",
        "sources": ["/opt/base", "/opt/base/home/venv", "/srv/store/plugins/enc/1.0.0", "/opt/b"],
        "binary": "/tmp/3/bin/bwrap",
    }
    assert " ".join(plan["options"]) == (
        f"{WALLS}"
        "--ro-bind /tmp/0 /opt/base --ro-bind /tmp/2 /spm/plugins/enc --tmpfs /opt/base/home "
        "--ro-bind /tmp/1 /opt/base/home/venv "
        "--symlink usr/lib /lib --setenv HOME /tmp --remount-ro /opt/base/home --remount-ro / --chdir /tmp"
    )


def test_bubblewrap_is_taken_from_the_search_path_first(tmp_path: Path) -> None:
    (tmp_path / "bwrap").touch(mode=0o755)

    assert find(str(tmp_path)) == Bubblewrap(path=tmp_path / "bwrap", folder=tmp_path)


def test_a_view_shows_only_the_interpreter_libraries_our_worker_code_and_the_plugins(tmp_path: Path) -> None:
    tree = Bind(source=str(tmp_path), target="/spm/plugins/enc")

    view = view_of([tree], hidden=["/srv/store"], environment={})

    root = Path(views.code_folder())
    allowed = {"/usr", "/lib", "/lib64", "/lib32", "/libx32", "/etc/ld.so.cache", sys.prefix, sys.base_prefix}
    allowed |= {str(root / "manifests"), str(root / "runtime"), "/spm/plugins/enc"}
    assert set(view.granted) <= allowed
    assert "/spm/plugins/enc" in view.granted
    assert view.masks == ()


def test_a_store_inside_a_granted_folder_is_masked() -> None:
    hidden = os.path.join(sys.prefix, "var", "store")

    view = view_of([], hidden=[hidden], environment={})

    assert view.masks == (hidden,)


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="the interpreter is no virtual environment")
def test_a_home_that_holds_the_interpreter_hides_all_else() -> None:
    view = view_of([], hidden=[str(Path(sys.prefix).parent)], environment={})

    assert sys.prefix in view.granted
