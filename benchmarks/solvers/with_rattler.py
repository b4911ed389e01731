"""py-rattler, a solver in Rust, on a problem of `solvers.problem`. Solves for conda's repodata, as it always does.

The repodata is written and opened once; the records that a root can reach are read within its time, as no call of it
takes them read already.
"""

import asyncio
import json
import tempfile
from pathlib import Path

from rattler import Channel, ChannelPriority, SparseRepoData  # type: ignore[import-not-found]
from rattler.exceptions import SolverError  # type: ignore[import-not-found]
from rattler.solver import solve_with_sparse_repodata  # type: ignore[import-not-found]

from benchmarks.solvers.problem import Packages, Pins, Solve, answer_all


def prepare(packages: Packages) -> Solve:
    path = Path(tempfile.mkdtemp()) / "repodata.json"
    path.write_text(json.dumps({"info": {"subdir": "noarch"}, "packages": records(packages), "packages.conda": {}}))
    repodata = [SparseRepoData(Channel(path.parent.as_uri()), "noarch", path)]

    def solve(name: str, wanted: str) -> Pins | None:
        solving = solve_with_sparse_repodata([f"{name} {wanted}"], repodata, channel_priority=ChannelPriority.Disabled)
        try:
            found = asyncio.run(solving)
        except SolverError:
            return None
        return {record.name.normalized: str(record.version) for record in found}

    return solve


def records(packages: Packages) -> dict[str, dict[str, object]]:
    return {
        f"{name}-{version}-0.tar.bz2": {
            "name": name,
            "version": version,
            "build": "0",
            "build_number": 0,
            "subdir": "noarch",
            "depends": [f"{other} {wanted}" for other, wanted in requires.items()],
        }
        for name, releases in packages.items()
        for version, requires in releases.items()
    }


if __name__ == "__main__":
    answer_all(prepare)
