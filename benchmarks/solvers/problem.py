"""A universe and its roots in, each root's answer and time out: what every solver is asked. Solves nothing itself.

It is imported by the peers' interpreters, so by the standard library alone. Versions are `N.0.0`, and a range is `*` or
comparisons joined by commas: each solver may hold a version as the number N, which is the cheapest it can compare.
"""

import gc
import json
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

Packages = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Name, then version, to the ranges it requires by name."""
Pins = Mapping[str, str]
Solve = Callable[[str, str], Pins | None]
"""From a root's name and range to pins; None is a proof that there are none."""

ENDLESS = 1 << 30
SOLVED, REFUTED, UNSOLVED = "solved", "refuted", "unsolved"


class Unsolved(Exception):
    """Neither an answer nor a proof: the solver gave up, or time was over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a solver said of one root, and its time by the clock and by the cores.

    `fault` says why its pins are no resolution, `why` why it has no answer; both are empty where all is well.
    """

    root: str
    state: str
    ms: float
    cpu_ms: float
    pins: int
    fault: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All answers of one solver; `prepared_ms` is what it took to parse the universe, which is not in their times."""

    answers: tuple[Answer, ...]
    prepared_ms: float
    peak_mib: float

    @classmethod
    def from_json(cls, text: str) -> "Report":
        members = json.loads(text)
        return cls(**members | {"answers": tuple(Answer(**answer) for answer in members["answers"])})


def answer_all(prepare: Callable[[Packages], Solve]) -> None:
    """Read a problem from stdin, solve each of its roots and write the report to stdout."""
    problem = json.load(sys.stdin)
    packages: Packages = problem["packages"]
    started = time.perf_counter()
    solve = prepare(packages)
    prepared_ms = (time.perf_counter() - started) * 1000
    signal.signal(signal.SIGALRM, _give_up)
    answers = tuple(
        _answer(solve, packages, name, wanted, problem["seconds"]) for name, wanted in map(tuple, problem["roots"])
    )
    print(json.dumps(asdict(Report(answers=answers, prepared_ms=prepared_ms, peak_mib=peak_mib()))))


def _answer(solve: Solve, packages: Packages, name: str, wanted: str, seconds: float) -> Answer:
    gc.collect()
    pins: Pins | None = {}
    state, why = UNSOLVED, ""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    started, cpu_started = time.perf_counter(), time.process_time()
    try:
        pins = solve(name, wanted)
        state = REFUTED if pins is None else SOLVED
    except Unsolved as error:
        why = str(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return Answer(
        root=f"{name} {wanted}",
        state=state,
        ms=(time.perf_counter() - started) * 1000,
        cpu_ms=(time.process_time() - cpu_started) * 1000,
        pins=len(pins or ()),
        fault=fault_of(packages, name, wanted, pins) if state == SOLVED and pins is not None else "",
        why=why,
    )


def _give_up(number: int, frame: FrameType | None) -> None:
    raise Unsolved("it was stopped from outside, when its time was over")


def fault_of(packages: Packages, name: str, wanted: str, pins: Pins) -> str:
    """Return the first requirement that the pins do not meet."""
    requirements = [(name, wanted)]
    for pinned, version in pins.items():
        if version not in packages.get(pinned, {}):
            return f"{pinned} has no {version}"
        requirements += packages[pinned][version].items()
    for other, needed in requirements:
        if other not in pins or not holds(needed, number_of(pins[other])):
            return f"{other} {needed} is not met by {pins.get(other)}"
    return ""


def number_of(version: str) -> int:
    major, _, rest = version.partition(".")
    if rest != "0.0":
        raise ValueError(f"{version} is not N.0.0")
    return int(major)


def bounds_of(wanted: str) -> tuple[int, int]:
    """Return the first number in a range and the first above it; `ENDLESS` stands for none."""
    low, high = 0, ENDLESS
    for part in wanted.split(",") if wanted != "*" else ():
        sign = part.rstrip("0123456789.")
        number = number_of(part[len(sign) :])
        low = max(low, number + (sign == ">")) if sign in (">=", ">", "==") else low
        high = min(high, number + (sign != "<")) if sign in ("<", "<=", "==") else high
    return low, high


def holds(wanted: str, number: int) -> bool:
    low, high = bounds_of(wanted)
    return low <= number < high


def newest_first(packages: Packages) -> dict[str, list[int]]:
    return {name: sorted(map(number_of, releases), reverse=True) for name, releases in packages.items()}


def peak_mib() -> float:
    """Return this process's own peak of resident memory; `getrusage` would count its parent's at the fork."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024
