"""Three hundred SIGKILLs at random instants of the commands that change a store: `python -m benchmarks.kills`.

Install, upgrade, uninstall, rollback and gc are killed between their first change in the store and their end, each time
on a machine of its own. Then every plugin of the current generation is verified as at a load: OLD and NEW count the
whole states found, BROKEN all others. The command is run again where it had not done its work, and a `gc` follows:
AMISS counts what was refused, or left other files than without a kill. MID-WORK says how many kills left a scratch
folder behind. Exits 1 where anything was broken or amiss.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.e2e.kills import BROKEN, NEW, OLD, Outcome, kill, kinds

_ROW = "{:<12}{:>7}{:>10}{:>7}{:>7}{:>8}{:>7}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300, help="how many, over all commands (default: 300)")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(1 << 32), help="repeat the instants of another run"
    )
    parser.add_argument("--at-once", type=int, default=3, metavar="N", help="machines killed at once (default: 3)")
    options = parser.parse_args()
    began = time.monotonic()
    outcomes = kill_all(options.kills, random.Random(options.seed), options.at_once)
    print(table(outcomes))
    print(f"seed {options.seed}, {time.monotonic() - began:.0f} s, {options.at_once} at once")
    for outcome in outcomes:
        if outcome.amiss:
            print(f"{outcome.kind}: found {outcome.found}; {outcome.amiss}", file=sys.stderr)
    return 1 if any(outcome.amiss or outcome.found == BROKEN for outcome in outcomes) else 0


def kill_all(count: int, chance: random.Random, at_once: int) -> list[Outcome]:
    with tempfile.TemporaryDirectory() as folder, kinds(Path(folder)) as prepared, ThreadPoolExecutor(at_once) as pool:
        trials = [(prepared[number % len(prepared)], number, random.Random(chance.random())) for number in range(count)]
        return list(pool.map(lambda trial: kill(*trial), trials))


def table(outcomes: Sequence[Outcome]) -> str:
    rows = [_ROW.format("COMMAND", "KILLS", "MID-WORK", "OLD", "NEW", "BROKEN", "AMISS")]
    for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
        rows.append(_row(kind, [outcome for outcome in outcomes if outcome.kind == kind]))
    return "\n".join([*rows, _row("all", outcomes)])


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    found = [outcome.found for outcome in outcomes]
    return _ROW.format(
        name,
        len(outcomes),
        sum(outcome.was_at_work for outcome in outcomes),
        found.count(OLD),
        found.count(NEW),
        found.count(BROKEN),
        sum(bool(outcome.amiss) for outcome in outcomes),
    )


if __name__ == "__main__":
    sys.exit(main())
