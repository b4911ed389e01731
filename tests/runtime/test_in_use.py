"""The mark that a host runs a plugin: seen by others while it is held, gone with the process."""

import errno
import fcntl
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from manifests.errors import InUse, LimitReached, Undecided
from runtime import in_use
from runtime.in_use import Idle, Running, Untold, excluded, mark, seized

ONE, TWO = "ab" * 32, "cd" * 32
MARK = """
import sys
from contextlib import ExitStack
from pathlib import Path
from runtime.in_use import mark
with ExitStack() as marks:
    mark(Path(sys.argv[1]), sys.argv[2:], marks)
    print("marked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for sha256 in (ONE, TWO):
        (tmp_path / "manifests" / sha256).mkdir(parents=True)
        (tmp_path / "manifests" / sha256 / "manifest.json").write_bytes(b"{}")
    return tmp_path


@contextmanager
def marking(root: Path, *manifests: str) -> Iterator[subprocess.Popen[str]]:
    """Give another process that has marked these."""
    with subprocess.Popen(
        [sys.executable, "-c", MARK, str(root), *manifests],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "marked\n"
        yield process
        process.kill()


def standing(root: Path, sha256: str = ONE) -> in_use.Standing:
    with seized(root, sha256) as found:
        return found


def test_what_nobody_marked_is_idle(root: Path) -> None:
    assert standing(root) == Idle()


@pytest.mark.parametrize("sha256", ["ef" * 32, f"{ONE}/manifest.json"])
def test_what_has_no_manifest_is_run_by_nobody(root: Path, sha256: str) -> None:
    with ExitStack() as marks:
        mark(root, [sha256], marks)

        assert standing(root, sha256) == Idle()


def test_a_mark_is_seen_with_its_process_and_gone_with_it(root: Path) -> None:
    with marking(root, ONE) as process:
        assert standing(root) == Running((process.pid,))
        assert standing(root, TWO) == Idle()
        process.kill()
        process.wait()

        assert standing(root) == Idle()


def test_two_hosts_are_both_named(root: Path) -> None:
    with marking(root, ONE) as first, marking(root, ONE, TWO) as second:
        assert standing(root) == Running(tuple(sorted((first.pid, second.pid))))


def test_a_process_forked_off_meanwhile_does_not_keep_a_released_mark(root: Path) -> None:
    with ExitStack() as marks:
        mark(root, [ONE], marks)
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
    try:
        assert standing(root) == Idle()
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_a_program_started_by_the_host_does_not_inherit_the_mark(root: Path) -> None:
    with ExitStack() as marks:
        mark(root, [ONE], marks)
        found = subprocess.run(
            ["sh", "-c", "ls -l /proc/$$/fd"],
            close_fds=False,
            capture_output=True,
            text=True,
            check=True,
        )

    assert "manifest.json" not in found.stdout
    assert "->" in found.stdout


def test_a_mark_waits_for_a_command_that_takes_something_away(root: Path) -> None:
    told: list[str] = []

    def begin() -> None:
        with ExitStack() as marks:
            mark(root, [ONE], marks)
            told.append("marked")

    host = threading.Thread(target=begin)
    with seized(root, ONE) as found:
        assert found == Idle()
        host.start()
        time.sleep(0.1)
        told.append("taken away")
    host.join()

    assert told == ["taken away", "marked"]


def test_a_command_that_is_stopped_meanwhile_is_told_to_the_host(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_use, "_HOST_PATIENCE_SECONDS", 0.05)

    with seized(root, ONE), ExitStack() as marks, pytest.raises(LimitReached) as refused:
        mark(root, [ONE], marks)

    assert (refused.value.reason, refused.value.message, refused.value.hint) == (
        "limit:races",
        f"{root}/manifests/{ONE}/manifest.json was held by another command for 0 seconds",
        "load it again; if it stays so, look for an `spm` that was stopped",
    )


def test_a_replaced_manifest_is_marked_as_it_is_now(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flock = root / "manifests" / ONE / "manifest.json", fcntl.flock

    def replace_first(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        path.with_name("new").write_bytes(b"{}")
        path.with_name("new").rename(path)
        flock(descriptor, operation)

    with ExitStack() as marks:
        monkeypatch.setattr(fcntl, "flock", replace_first)
        mark(root, [ONE], marks)

        assert standing(root) == Running((os.getpid(),))


def test_commands_that_ask_at_once_do_not_take_each_other_for_hosts(root: Path) -> None:
    refused: list[BaseException] = []

    def ask(order: tuple[str, str]) -> None:
        try:
            for _ in range(40):
                with excluded(root, dict.fromkeys(order, "`x` 1.0.0")):
                    time.sleep(0.001)
        except BaseException as error:  # noqa: BLE001 - asserted below
            refused.append(error)

    workers = [threading.Thread(target=ask, args=(order,)) for order in ((ONE, TWO), (TWO, ONE)) * 2]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert refused == []


def test_a_command_that_takes_long_is_waited_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_use, "_PATIENCE_SECONDS", 0.02)
    found: list[in_use.Standing] = []

    asking = threading.Thread(target=lambda: found.append(standing(root)))
    with seized(root, ONE):
        asking.start()
        time.sleep(0.2)
    asking.join()

    assert found == [Idle()]


def test_what_a_host_runs_is_not_excluded(root: Path) -> None:
    shown = {ONE: "`alpha` 1.0.0", TWO: "`beta` 1.0.0"}
    with marking(root, TWO) as process:
        name = Path(f"/proc/{process.pid}/comm").read_text().strip()
        with pytest.raises(InUse) as refused, excluded(root, shown, is_known_idle=True):
            pass

    assert (refused.value.exit_code, refused.value.reason) == (42, "in-use")
    assert (refused.value.message, refused.value.hint) == (
        f"`beta` 1.0.0 is run by process {process.pid} ({name}); nothing was changed",
        "end that host, or close what it has loaded, and run the command again",
    )
    assert refused.value.context == {"plugins": ["`beta` 1.0.0"], "processes": [process.pid]}


def test_all_that_hosts_run_is_named(root: Path) -> None:
    shown = {ONE: "`alpha` 1.0.0", TWO: "`beta` 1.0.0"}
    with ExitStack() as marks:
        mark(root, [TWO, ONE], marks)
        with pytest.raises(InUse) as refused, excluded(root, shown):
            pass

    name = Path("/proc/self/comm").read_text().strip()
    assert refused.value.message == (
        f"`alpha` 1.0.0, `beta` 1.0.0 are run by process {os.getpid()} ({name}); nothing was changed"
    )


def test_a_host_that_cannot_be_seen_is_told_as_such(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_use, "_holders", lambda *_: ())
    monkeypatch.setattr(in_use, "_PATIENCE_SECONDS", 0.05)

    with ExitStack() as marks:
        mark(root, [ONE], marks)
        with pytest.raises(InUse) as refused, excluded(root, {ONE: "`alpha` 1.0.0"}):
            pass

    assert refused.value.message == (
        "`alpha` 1.0.0 is run by a host that cannot be seen from here, as in another container or on another machine; "
        "nothing was changed"
    )


def failing(number: int) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EBADF, errno.EOPNOTSUPP])
def test_a_disk_without_locks_lets_hosts_run_and_cannot_tell(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr(fcntl, "flock", failing(number))

    with ExitStack() as marks:
        mark(root, [ONE], marks)

        assert standing(root) == Untold(os.strerror(number))
        with excluded(root, {ONE: "`alpha` 1.0.0"}, is_known_idle=True):
            pass
        with pytest.raises(Undecided) as refused, excluded(root, {ONE: "`alpha` 1.0.0"}):
            pass
    assert (refused.value.reason, refused.value.message, refused.value.hint) == (
        "unknown:in-use",
        f"whether a host runs `alpha` 1.0.0 cannot be told: the disk under `{root}` has no file locks "
        f"({os.strerror(number)}); nothing was changed",
        "if you know that none runs it, run the command again with `--not-running`",
    )


def test_a_disk_that_fails_is_no_disk_without_locks(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", failing(errno.EIO))

    with ExitStack() as marks, pytest.raises(Undecided) as refused:
        mark(root, [ONE], marks)
    with pytest.raises(OSError, match="Input/output error"):
        standing(root)

    assert refused.value.message == f"{root}/manifests/{ONE}/manifest.json cannot be locked: Input/output error"


def test_a_host_without_a_free_descriptor_is_refused(root: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
        while True:
            try:
                stack.callback(os.close, os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        with ExitStack() as marks, pytest.raises(LimitReached) as refused:
            mark(root, [ONE], marks)

    assert (refused.value.reason, refused.value.hint) == (
        "limit:descriptors",
        "raise the limit, as in `ulimit -n 4096`",
    )
