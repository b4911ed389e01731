"""Solvers held against each other: `python -m benchmarks.resolver --peers DIR`. Checks no explanation.

pubgrub_graph_0: each release of a real dependency graph is solved as a root. The others: one root in 2,000 plugins of
20 releases, of which a share is poisoned; hidden30 runs with `--only` alone, as nab-resolver does not finish it. Every
solver runs in a process of its own and parses the universe outside the timed part; each prefers the newest release. The
pins are checked against the universe, and a root's answer against nab-resolver's. Rounds take turns, so that a busy
moment of the machine falls on all alike; times are medians. CPU is the time on the cores, which a busy machine distorts
less.
"""

import argparse
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import bare_samples, clean_environment, noise
from benchmarks.peers import REPOSITORY, Peers, add_option, peers_of
from benchmarks.solvers.problem import REFUTED, SOLVED, UNSOLVED, Report
from benchmarks.universes import GRAPH, POISONED, Universe, make_universe, read_graph

GRAPH_SECONDS, SYNTHETIC_SECONDS = 5.0, 60.0
MARGIN_SECONDS = 240.0
SYNTHETIC = ("easy", "hidden5", "hidden15")
JUDGE = "nab-resolver"


@dataclass(frozen=True, slots=True, kw_only=True)
class Solver:
    """A row of the tables: what it is called, where it comes from, and the words that start it."""

    name: str
    module: str
    words: tuple[str, ...] = ()
    distribution: str = ""

    def command(self, peers: Peers) -> list[str]:
        python = peers.python if self.distribution else sys.executable
        return [python, "-m", f"benchmarks.solvers.{self.module}", *self.words]


SPM = Solver(name="spm", module="with_spm")
NAB = [
    Solver(name=JUDGE, module="with_nab", words=("by-conflicts",), distribution="nab-resolver"),
    Solver(
        name="  as found, no report", module="with_nab", words=("as-found", "no-report"), distribution="nab-resolver"
    ),
]
RESOLVELIB = Solver(name="resolvelib", module="with_resolvelib", distribution="resolvelib")
RATTLER = Solver(name="py-rattler", module="with_rattler", distribution="py-rattler")
HEADING = (
    f"{'SOLVER':<22}{'SOLVED':>7}{'REFUTED':>8}{'UNSOLVED':>9}{'WRONG':>6}{'AGREES':>7}{'TOTAL ms':>10}{'x spm':>7}"
    f"{'NOISE ms':>17}{'CPU ms':>9}{'x spm':>7}{'WORST ms':>10}{'PARSE ms':>10}{'PEAK MiB':>10}"
)
Outcome = Report | str
"""A report; or why there is none."""


def main() -> int:
    options = parse(sys.argv[1:])
    peers, before = peers_of(options.peers), bare_samples()
    is_sound = True
    for universe, solvers, seconds in tasks(options):
        outcomes = run_all(universe, solvers, seconds, peers, options.rounds)
        print(table(universe, outcomes), end="\n\n", flush=True)
        is_sound &= not mistakes(outcomes)
    print(noise(before))
    return 0 if is_sound else 1


def parse(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.resolver", description=__doc__.splitlines()[0])
    add_option(parser)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each solver (default: 3)")
    parser.add_argument("--graph", type=Path, default=REPOSITORY / GRAPH, help="the graph's file")
    parser.add_argument("--only", choices=("graph", *POISONED), action="append", help="run only this universe")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the synthetic universes (default: 0)")
    return parser.parse_args(words)


def tasks(options: argparse.Namespace) -> Iterator[tuple[Universe, list[Solver], float]]:
    """Give each universe with the solvers that it is put to, and the most seconds for one root."""
    if "graph" in (options.only or ("graph",)):
        if options.graph.exists():
            yield read_graph(options.graph), [SPM, *NAB, RESOLVELIB, RATTLER], GRAPH_SECONDS
        else:
            print(f"graph: absent: there is no {options.graph}\n")
    for name in POISONED:
        if name in (options.only or SYNTHETIC):
            yield make_universe(name, seed=options.seed), [SPM, *NAB, RATTLER], SYNTHETIC_SECONDS


def run_all(
    universe: Universe, solvers: Sequence[Solver], seconds: float, peers: Peers, rounds: int
) -> dict[str, list[Outcome]]:
    problem = universe.problem(seconds)
    outcomes: dict[str, list[Outcome]] = {solver.name: [] for solver in solvers}
    for _ in range(rounds):
        for solver in solvers:
            known = [outcome for outcome in outcomes[solver.name] if isinstance(outcome, str)]
            outcomes[solver.name].append(known[0] if known else run(solver, problem, seconds, peers))
    return outcomes


def run(solver: Solver, problem: str, seconds: float, peers: Peers) -> Outcome:
    """Run a solver in a process of its own; a string is why it has no report."""
    if solver.distribution and (absence := peers.absence(solver.distribution)):
        return f"absent: {absence}"
    try:
        done = subprocess.run(
            solver.command(peers),
            input=problem,
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            env=clean_environment(),
            timeout=seconds + MARGIN_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {seconds + MARGIN_SECONDS:.0f} s, and killed"
    if done.returncode:
        return f"failed: {done.stderr.strip().splitlines()[-1:] or done.returncode}"
    return Report.from_json(done.stdout)


def table(universe: Universe, outcomes: Mapping[str, list[Outcome]]) -> str:
    roots = len(universe.roots)
    reports = {name: [outcome for outcome in found if isinstance(outcome, Report)] for name, found in outcomes.items()}
    rows = [f"{universe.name}: {len(universe.packages)} plugins, {roots} root{'s' * (roots > 1)}", HEADING]
    for name, found in outcomes.items():
        reason = next((outcome for outcome in found if isinstance(outcome, str)), "")
        rows.append(f"{name:<22}{reason}" if reason else row(name, reports[name], reports))
    return "\n".join(rows + [f"{name.strip()}: {why}" for name, why in unanswered(reports)])


def unanswered(reports: Mapping[str, Sequence[Report]]) -> Iterator[tuple[str, str]]:
    """Give, of each solver that left a root unsolved, the first such root and why."""
    for name, found in reports.items():
        answers = [answer for report in found[:1] for answer in report.answers if answer.state == UNSOLVED]
        yield from [(name, f"{answer.root} is unsolved: {answer.why[:200]}") for answer in answers[:1]]


def row(name: str, mine: Sequence[Report], reports: Mapping[str, Sequence[Report]]) -> str:
    """Return a solver's row; its ratios are to spm's times, and it agrees with the judge on so many roots."""
    states = [answer.state for answer in mine[0].answers]
    totals = [total_ms(report) for report in mine]
    judge = reports[JUDGE][0] if reports.get(JUDGE) else None
    ratios = [
        f"{middle(mine, measure) / middle(reports['spm'], measure):.2f}" if reports["spm"] else "-"
        for measure in (total_ms, cpu_ms)
    ]
    return (
        f"{name:<22}{states.count(SOLVED):>7}{states.count(REFUTED):>8}{states.count(UNSOLVED):>9}"
        f"{sum(bool(answer.fault) for answer in mine[0].answers):>6}{agreements(mine[0], judge) if judge else '-':>7}"
        f"{statistics.median(totals):>10.0f}{ratios[0]:>7}{f'{min(totals):.0f} to {max(totals):.0f}':>17}"
        f"{middle(mine, cpu_ms):>9.0f}{ratios[1]:>7}{middle(mine, worst_ms):>10.1f}"
        f"{middle(mine, lambda report: report.prepared_ms):>10.0f}{middle(mine, lambda report: report.peak_mib):>10.0f}"
    )


def total_ms(report: Report) -> float:
    return sum(answer.ms for answer in report.answers)


def cpu_ms(report: Report) -> float:
    return sum(answer.cpu_ms for answer in report.answers)


def worst_ms(report: Report) -> float:
    return max(answer.ms for answer in report.answers)


def middle(reports: Sequence[Report], measure: Callable[[Report], float]) -> float:
    return statistics.median(map(measure, reports))


def agreements(report: Report, judge: Report) -> int:
    """Count the roots that both found to have, or not to have, a resolution; one left unsolved agrees with nothing."""
    states = {answer.root: answer.state for answer in judge.answers}
    return sum(answer.state == states[answer.root] != UNSOLVED for answer in report.answers)


def mistakes(outcomes: Mapping[str, list[Outcome]]) -> list[str]:
    """Return what is wrong with spm's own: no report, pins that are no resolution, another answer than the judge's."""
    reports = [outcome for outcome in outcomes["spm"] if isinstance(outcome, Report)]
    judged = [outcome for outcome in outcomes.get(JUDGE, ()) if isinstance(outcome, Report)]
    states = {answer.root: answer.state for report in judged[:1] for answer in report.answers}
    contrary = {SOLVED: REFUTED, REFUTED: SOLVED}
    answers = [answer for report in reports for answer in report.answers]
    faults = [outcome for outcome in outcomes["spm"] if isinstance(outcome, str)]
    faults += [f"{answer.root}: {answer.fault}" for answer in answers if answer.fault]
    faults += [
        f"{answer.root}: {answer.state}"
        for answer in answers
        if states.get(answer.root) == contrary.get(answer.state, "")
    ]
    for fault in faults:
        print(f"wrong: {fault}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
