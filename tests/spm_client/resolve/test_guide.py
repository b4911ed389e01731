"""The guide to resolution shows what spm really says."""

from pathlib import Path

import pytest

from manifests.errors import SpmError
from manifests.target import Target
from spm_client.resolve import resolve
from tests.spm_client.resolve.universe import HOST, Universe, gpu_host, release, solve, variant, wishes

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "resolution.md"

OLD_AND_NEW = Universe(
    beat=[release("1.0.0"), release("1.1.0", requires={"mel": "^2"})], mel=[release("1.0.0"), release("2.0.0")]
)
CONFLICT = Universe(
    beat=[release(version, requires={"mel": "^2"}) for version in ("1.0.0", "1.1.0")],
    mel=[release(version) for version in ("1.3.0", "1.4.0", "2.0.0", "2.1.0")],
)
TORCH = Universe(mel=[release("1.0.0"), release("1.1.0", torch=">=2.14")])
CARDS = Universe(fused=[release("1.0.0", variant(), variant(accelerator="cuda", sm="sm_90"))])


@pytest.mark.parametrize(
    ("universe", "specs", "target"),
    [
        (OLD_AND_NEW, ["beat", "mel@^1"], HOST),
        (TORCH, ["mel"], HOST),
        (CARDS, ["fused"], gpu_host("sm_86")),
        (CONFLICT, ["beat", "mel@^1"], HOST),
    ],
)
def test_refusals_in_the_guide_are_those_of_the_solver(universe: Universe, specs: list[str], target: Target) -> None:
    with pytest.raises(SpmError) as refused:
        resolve(universe, wishes(*specs), target)

    told = f"error[{refused.value.reason}]: {refused.value.message}\n"
    told += f"  hint: {refused.value.hint}\n" if refused.value.hint else ""
    words = " ".join(f"'{spec}'" if "@" in spec else spec for spec in specs)
    assert f"$ spm install {words}\n{told}```" in GUIDE.read_text(encoding="utf-8")


def test_ways_on_that_the_guide_names_are_open() -> None:
    assert solve(OLD_AND_NEW, "beat", "mel") == {"beat": "1.1.0", "mel": "2.0.0"}
    assert solve(OLD_AND_NEW, "beat@~1.0", "mel@^1") == {"beat": "1.0.0", "mel": "1.0.0"}
