"""Whether a release's facts suit a target's facts: contract, torch, Python, and one build's machine. Chooses no build.

A misfit is certain; a fact that the target lacks is an unknown, and never a fit.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from manifests.parts import Requires, Variant
from manifests.ranges import Range
from manifests.target import Target
from manifests.versions import pep440_sort_key

OTHER_MACHINE = "no-variant"
SM = re.compile(r"sm_(?P<major>[0-9]+)(?P<minor>[0-9])(?P<suffix>[af]?)")


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


Doubt = Misfit | Unknown


def release_doubt(contract: Range, requires: Requires, target: Target) -> Doubt | None:
    """Return what speaks against a release on this target, whatever its build: contract version, torch, Python."""
    return first_doubt(
        (
            _range_doubt("contract", "Seedance contract", contract, target.contract),
            _torch_doubt(requires.torch, target),
            _range_doubt("python", "Python", requires.python, target.python),
        )
    )


def variant_doubt(variant: Variant, target: Target) -> Doubt | None:
    """Return what speaks against one build on this target: os, cpu, accelerator, sm, CUDA, torch, Python."""
    return first_doubt(
        (
            _machine_doubt(variant, target),
            sm_doubt(variant.sm, target),
            _cuda_doubt(variant, target),
            _torch_doubt(variant.torch, target),
            _range_doubt("python", "Python", variant.python, target.python),
        )
    )


def first_doubt(doubts: Iterable[Doubt | None]) -> Doubt | None:
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


def sm_doubt(built: tuple[str, ...], target: Target) -> Doubt | None:
    """Return why no device of the target runs any of these device codes."""
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
    code, place = SM.fullmatch(built), SM.fullmatch(device)
    if code is None or place is None or code["major"] != place["major"]:
        return False
    return code["minor"] == place["minor"] if code["suffix"] == "a" else code["minor"] <= place["minor"]


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


@lru_cache(maxsize=4096)  # Thousands of releases ask the same of one target.
def _range_doubt(reason: str, what: str, wanted: Range | None, found: str) -> Doubt | None:
    if wanted is None:
        return None
    # A host's own version is a fact, not a choice: `2.13.0+cpu` counts as 2.13.0, and a pre-release by its order.
    key = pep440_sort_key(found)
    if key is None:
        return Unknown(reason, f"needs {what} `{wanted}`, and the target's {what} {found!r} cannot be compared")
    if wanted.spans(key):
        return None
    return Misfit(reason, f"needs {what} `{wanted}`, and the target has {found}")


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)
