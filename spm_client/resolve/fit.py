"""Whether a release suits a target, and by which variant: facts against facts. Knows nothing of other plugins.

1. What the release asks of every target: contract version, torch, Python.
2. Each variant: os, cpu, accelerator, sm, CUDA, torch, Python.
3. The most specific variant that fits is taken. Builds for another os, cpu or accelerator are for other machines; a
   more specific build for *this* kind of machine that cannot be used makes the choice a variant fallback.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from manifests.fit import OTHER_MACHINE, SM, Doubt, Misfit, Unknown, first_doubt, release_doubt, sm_doubt, variant_doubt
from manifests.index import ReleaseEntry, VariantEntry
from manifests.parts import Variant
from manifests.target import Target


@dataclass(frozen=True, slots=True)
class Fits:
    """It fits by this variant; `passed_over` are the more specific ones for this kind of machine that do not."""

    variant: VariantEntry
    passed_over: tuple[tuple[VariantEntry, Misfit], ...] = ()


Verdict = Fits | Doubt
Rank = tuple[int | bool, ...]


def judge_for(
    target: Target, *, exclude_newer: datetime | None = None, force_arch: str | None = None
) -> Callable[[ReleaseEntry], Verdict]:
    """Return what judges releases for a target, and by what a person bounds them besides.

    With `force_arch` (`sm_86`), builds with device code count only if it is for exactly that architecture.
    """

    def judged(release: ReleaseEntry) -> Verdict:
        if exclude_newer is not None and release.published is None:
            return Unknown("published", "does not say when it was published, and `--exclude-newer` asks for that")
        return judge(release, target) if force_arch is None else _judge_exactly(release, target, force_arch)

    return judged


def _judge_exactly(release: ReleaseEntry, target: Target, arch: str) -> Verdict:
    built = {sm for entry in release.variants if entry.variant for sm in entry.variant.sm}
    if not built:
        return judge(release, target)
    exact = tuple(entry for entry in release.variants if entry.variant and arch in entry.variant.sm)
    if not exact:
        told = ", ".join(sorted(built))
        return Misfit("arch", f"is built for {told}, and `--force-arch={arch}` asks for exactly that")
    return judge(replace(release, variants=exact), target)


def judge(release: ReleaseEntry, target: Target) -> Verdict:
    """Tell whether and by which variant the release fits the target. A misfit is certain; an unknown is never a fit."""
    verdict = judge_variants(release.variants, target)
    general = first_doubt(
        (
            release_doubt(release.seedance_version, release.requires, target),
            verdict if isinstance(verdict, Misfit) else None,
        )
    )
    return general or verdict


def judge_variants(variants: Iterable[VariantEntry], target: Target) -> Verdict:
    """Pick the most specific variant that fits, or say why none does."""
    ranked = sorted(variants, key=lambda entry: _order(entry, target), reverse=True)
    passed: list[tuple[VariantEntry, Misfit]] = []
    for entry in ranked:
        doubt = variant_doubt(entry.variant or Variant(), target)
        if isinstance(doubt, Unknown):
            return doubt
        if doubt is None:
            return Fits(entry, tuple(item for item in passed if _is_lesser(entry, item, target)))
        passed.append((entry, doubt))
    return _no_variant(passed)


def tag_of(entry: VariantEntry) -> str:
    return entry.variant.tag if entry.variant else "any"


def _is_lesser(taken: VariantEntry, passed: tuple[VariantEntry, Misfit], target: Target) -> bool:
    entry, misfit = passed
    return misfit.reason != OTHER_MACHINE and _rank(entry, target) > _rank(taken, target)


def _no_variant(passed: list[tuple[VariantEntry, Misfit]]) -> Misfit:
    near = [item for item in passed if item[1].reason != OTHER_MACHINE] or passed
    reasons = {misfit.reason for _, misfit in near}
    told = "; ".join(f"`{tag_of(entry)}` {misfit.text}" for entry, misfit in near)
    return Misfit(
        reasons.pop() if len(reasons) == 1 else OTHER_MACHINE, f"has no variant for it: {told or 'it has none'}"
    )


def _order(entry: VariantEntry, target: Target) -> tuple[Rank, str]:
    return _rank(entry, target), tag_of(entry)


def _rank(entry: VariantEntry, target: Target) -> Rank:
    """Return how specific a build is; greater is more. An sm that this target can run counts by its nearness."""
    variant = entry.variant or Variant()
    level = {None: 0, "cpu": 1}.get(variant.accelerator, 2)
    usable = [_nearness(built) for built in variant.sm if sm_doubt((built,), target) is None]
    members = (variant.cuda, variant.torch, variant.python, variant.cpu, variant.os)
    return (level, bool(variant.sm), max(usable, default=0), *(member is not None for member in members))


def _nearness(built: str) -> int:
    """Order builds of one major: higher minor, then `a` before `f` before plain."""
    match = SM.fullmatch(built)
    return 0 if match is None else 1 + 3 * int(match["minor"]) + {"a": 2, "f": 1}.get(match["suffix"], 0)
