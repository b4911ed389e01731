"""Whether a release suits a target, and by which variant: facts against facts. Knows nothing of other plugins.

1. What the release asks of every target: contract version, torch, Python.
2. Each variant: os, cpu, accelerator, sm, CUDA, torch, Python.
3. The most specific variant that fits is taken. Builds for another os, cpu or accelerator are for other machines; a
   more specific build for *this* kind of machine that cannot be used makes the choice a variant fallback.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.version import InvalidVersion
from packaging.version import Version as PackagingVersion

from manifests.index import ReleaseEntry, VariantEntry
from manifests.parts import Variant
from manifests.ranges import Range
from manifests.target import Target

OTHER_MACHINE = "no-variant"

_SM = re.compile(r"sm_(?P<major>[0-9]+)(?P<minor>[0-9])(?P<suffix>[af]?)")


@dataclass(frozen=True, slots=True)
class Misfit:
    """A fact of the target rules it out: a reason token of exit 12, and the fact as `needs ..., and ...`."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The target lacks the fact that would decide."""

    fact: str
    text: str


@dataclass(frozen=True, slots=True)
class Fits:
    """It fits by this variant; `passed_over` are the more specific ones for this kind of machine that do not."""

    variant: VariantEntry
    passed_over: tuple[tuple[VariantEntry, Misfit], ...] = ()


Doubt = Misfit | Unknown
Verdict = Fits | Doubt
Rank = tuple[int | bool, ...]


def judge(release: ReleaseEntry, target: Target) -> Verdict:
    """Tell whether and by which variant the release fits the target. A misfit is certain; an unknown is never a fit."""
    verdict = judge_variants(release.variants, target)
    general = _first(
        (
            _range_doubt("contract", "Seedance contract", release.seedance_version, target.contract),
            _torch_doubt(release.requires.torch, target),
            _range_doubt("python", "Python", release.requires.python, target.python),
            verdict if isinstance(verdict, Misfit) else None,
        )
    )
    return general or verdict


def judge_variants(variants: Iterable[VariantEntry], target: Target) -> Verdict:
    """Pick the most specific variant that fits, or say why none does."""
    ranked = sorted(variants, key=lambda entry: _order(entry, target), reverse=True)
    passed: list[tuple[VariantEntry, Misfit]] = []
    for entry in ranked:
        doubt = _variant_doubt(entry.variant or Variant(), target)
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
    usable = [_nearness(built) for built in variant.sm if _sm_doubt((built,), target) is None]
    members = (variant.cuda, variant.torch, variant.python, variant.cpu, variant.os)
    return (level, bool(variant.sm), max(usable, default=0), *(member is not None for member in members))


def _variant_doubt(variant: Variant, target: Target) -> Doubt | None:
    return _first(
        (
            _machine_doubt(variant, target),
            _sm_doubt(variant.sm, target),
            _cuda_doubt(variant, target),
            _torch_doubt(variant.torch, target),
            _range_doubt("python", "Python", variant.python, target.python),
        )
    )


def _first(doubts: Iterable[Doubt | None]) -> Doubt | None:
    """Return the first misfit, else the first unknown: what is ruled out needs no further fact."""
    found = [doubt for doubt in doubts if doubt is not None]
    return next((doubt for doubt in found if isinstance(doubt, Misfit)), found[0] if found else None)


def _machine_doubt(variant: Variant, target: Target) -> Misfit | None:
    if variant.os is not None and variant.os != target.os:
        return Misfit(OTHER_MACHINE, f"is built for {variant.os}, and the target runs {target.os}")
    if variant.cpu is not None and variant.cpu != target.cpu:
        return Misfit(OTHER_MACHINE, f"is built for {variant.cpu}, and the target's cpu is {target.cpu}")
    kind = variant.accelerator
    if kind not in {None, "cpu"} and all(device.kind != kind for device in target.devices):
        return Misfit(OTHER_MACHINE, f"is built for {kind}, and the target has no {kind} device")
    return None


def _sm_doubt(built: tuple[str, ...], target: Target) -> Doubt | None:
    if not built:
        return None
    devices = [device for device in target.devices if device.kind == "cuda"]
    if any(device.sm and _runs_on(code, device.sm) for device in devices for code in built):
        return None
    if unknown := next((device for device in devices if device.sm is None), None):
        return Unknown("sm", f"is built for {_listed(built)}, and the target does not say the sm of {unknown.id}")
    present = _listed(sorted({device.sm for device in devices if device.sm}))
    return Misfit("arch", f"is built for {_listed(built)}, and the target has {present or 'no cuda device'}")


def _runs_on(built: str, device: str) -> bool:
    """Tell whether device code runs: same major and at least its minor; `a` only there; `f` within the family."""
    code, place = _SM.fullmatch(built), _SM.fullmatch(device)
    if code is None or place is None or code["major"] != place["major"]:
        return False
    return code["minor"] == place["minor"] if code["suffix"] == "a" else code["minor"] <= place["minor"]


def _nearness(built: str) -> int:
    """Order builds of one major: higher minor, then `a` before `f` before plain."""
    match = _SM.fullmatch(built)
    return 0 if match is None else 1 + 3 * int(match["minor"]) + {"a": 2, "f": 1}.get(match["suffix"], 0)


def _cuda_doubt(variant: Variant, target: Target) -> Doubt | None:
    torch = target.torch
    if variant.cuda is None and (variant.accelerator != "cuda" or torch is None):
        return None
    wanted = f"needs CUDA `{variant.cuda}`" if variant.cuda else "is built for cuda"
    if torch is None:
        return Misfit("torch", f"{wanted}, and the target has no torch")
    if torch.cuda is None:
        return Misfit("torch", f"{wanted}, and the target's torch {torch.version} has no CUDA")
    return _range_doubt("torch", "CUDA", variant.cuda, torch.cuda)


def _torch_doubt(wanted: Range | None, target: Target) -> Doubt | None:
    if wanted is not None and target.torch is None:
        return Misfit("torch", f"needs torch `{wanted}`, and the target has no torch")
    return _range_doubt("torch", "torch", wanted, target.torch.version if target.torch else "")


def _range_doubt(reason: str, what: str, wanted: Range | None, found: str) -> Doubt | None:
    if wanted is None:
        return None
    try:
        # A host's own version is a fact, not a choice: `2.13.0+cpu` counts as 2.13.0, and a pre-release by its order.
        version = PackagingVersion(PackagingVersion(found).public)
    except InvalidVersion:
        return Unknown(reason, f"needs {what} `{wanted}`, and the target's {what} {found!r} cannot be compared")
    if wanted.interval.contains(version, prereleases=True):
        return None
    return Misfit(reason, f"needs {what} `{wanted}`, and the target has {found}")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)
