"""Calls at once: answers in order, refusals where they are looked at, and nobody waits for what is given up."""

import subprocess
import sys
import time
from threading import Event, Lock

import pytest

from manifests.errors import LimitReached, NotFound
from spm_client.adapters.at_once import PARALLEL, at_once
from spm_client.adapters.deadline import Watchdog
from tests.spm_client.adapters.threads import NO_THREAD, let_begin


@pytest.mark.parametrize("count", [1, 3])
def test_with_fewer_threads_all_is_answered_all_the_same(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    let_begin(monkeypatch, count, "at-once-")

    with at_once(lambda number: number * number, range(30)) as answers:
        assert [answer.result(5) for answer in answers] == [number * number for number in range(30)]


@pytest.mark.parametrize("error", [RuntimeError, MemoryError])
def test_without_a_thread_nothing_is_called(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    let_begin(monkeypatch, 0, "at-once-", error)
    called: list[int] = []

    with pytest.raises(LimitReached) as refused, at_once(called.append, range(3)):
        called.append(9)

    assert refused.value.reason == "limit:threads"
    assert (refused.value.message, refused.value.hint) == NO_THREAD
    assert called == []


def test_no_deadline_runs_without_a_thread_to_watch_it(monkeypatch: pytest.MonkeyPatch) -> None:
    watchdog = Watchdog()
    with monkeypatch.context() as limited:
        let_begin(limited, 0, "deadlines-")
        with pytest.raises(LimitReached), watchdog.deadline(5, None):
            pytest.fail("nothing would end it")

    with watchdog.deadline(0, None) as deadline:
        ends = time.monotonic() + 5
        while not deadline.is_over and time.monotonic() < ends:
            time.sleep(0.01)
    assert deadline.is_over
    watchdog.close()


def test_where_the_system_gives_no_memory_for_a_thread_it_is_a_refusal() -> None:
    script = (
        "import resource\n"
        "from manifests.errors import LimitReached\n"
        "from spm_client.adapters.at_once import at_once\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (2 << 20),) * 2)\n"
        "try:\n"
        "    with at_once(str, range(3)):\n"
        "        print('begun')\n"
        "except LimitReached as refusal:\n"
        "    print(refusal.reason)\n"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "limit:threads\n", "")


def test_answers_come_in_the_order_of_what_was_asked() -> None:
    with at_once(lambda number: number * number, range(30)) as answers:
        found = [answer.result(5) for answer in answers]

    assert found == [number * number for number in range(30)]


def test_nothing_asked_is_nothing_answered() -> None:
    with at_once(str, ()) as answers:
        assert answers == []


def test_a_refusal_is_told_where_it_is_looked_at_and_no_earlier() -> None:
    def call(name: str) -> str:
        if name == "b":
            raise NotFound("there is no b")
        return name

    with at_once(call, "abc") as answers:
        assert [answers[0].result(5), answers[2].result(5)] == ["a", "c"]
        with pytest.raises(NotFound) as refused:
            answers[1].result(5)

    assert refused.value.message == "there is no b"


def test_who_leaves_waits_for_no_call_and_lets_none_begin() -> None:
    begun, lock, is_over = [], Lock(), Event()
    all_wait = Event()

    def call(number: int) -> None:
        with lock:
            begun.append(number)
            if len(begun) == PARALLEL:
                all_wait.set()
        is_over.wait(10)

    with at_once(call, range(40)):
        all_wait.wait(5)
    left_after = list(begun)
    is_over.set()

    assert sorted(begun) == sorted(left_after) == list(range(PARALLEL))
