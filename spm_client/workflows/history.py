"""The generations of a store in their order: what changed in each, and what a return to one lacks. Changes nothing."""

import hashlib
from dataclasses import dataclass

from keys.verified import MAX_MANIFEST_BYTES
from manifests.errors import SpmError
from manifests.lockfile import Generation, InstalledEntry
from manifests.manifest import Manifest
from runtime.generation import current_number, read_bounded, read_generation
from spm_client.store.generations import numbers
from spm_client.store.layout import Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What became of one plugin from one generation to another: None where it is not in one of them."""

    before: InstalledEntry | None
    after: InstalledEntry | None

    @property
    def name(self) -> str:
        return self._either.name

    def __str__(self) -> str:
        before, after = self.before, self.after
        if before is None or after is None:
            return f"{'-' if after is None else '+'} {self.name} {self._either.release}"
        if before.release != after.release:
            return f"{self.name} {before.release} -> {after.release}"
        if before.manifest_sha256 != after.manifest_sha256:
            return f"{self.name} {after.release} of another build"
        return f"{self.name} {after.release} bound or wanted otherwise"

    @property
    def _either(self) -> InstalledEntry:
        entry = self.after or self.before
        assert entry is not None, "a change is of a plugin"
        return entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One generation: what it has, what changed in it, and what of it the store has no more. Damaged ones have a why.

    `changes` is None where the one before is gone or damaged.
    """

    number: int
    generation: Generation | None
    changes: tuple[Changed, ...] | None = None
    missing: tuple[InstalledEntry, ...] = ()
    damage: str = ""


def changes(before: tuple[InstalledEntry, ...], after: tuple[InstalledEntry, ...]) -> tuple[Changed, ...]:
    """Return what differs, by name. Pure."""
    old, new = {entry.name: entry for entry in before}, {entry.name: entry for entry in after}
    return tuple(
        Changed(before=old.get(name), after=new.get(name))
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    )


def history(layout: Layout) -> tuple[Step, ...]:
    """Return the generations up to the current one, oldest first."""
    current, steps = current_number(layout.root) or 0, list[Step]()
    before = {0: tuple[InstalledEntry, ...]()}
    for number in (number for number in numbers(layout) if number <= current):
        try:
            generation = read_generation(layout.root, number)
        except SpmError as error:
            steps.append(Step(number=number, generation=None, damage=error.message))
            continue
        known = before.get(number - 1)
        steps.append(
            Step(
                number=number,
                generation=generation,
                changes=None if known is None else changes(known, generation.plugins),
                missing=tuple(entry for entry in generation.plugins if lacks(layout, entry)),
            )
        )
        before = {number: generation.plugins}
    return tuple(steps)


def lacks(layout: Layout, entry: InstalledEntry) -> bool:
    """Tell at a glance whether the store lacks what a return to a plugin needs; a return itself looks closer."""
    if layout.tree(entry.name, entry.release).is_dir() and layout.manifest(entry.manifest_sha256).is_dir():
        return False
    manifest = manifest_of(layout, entry.manifest_sha256)
    return manifest is None or not all(layout.blob(file.sha256).is_file() for file in manifest.files)


def manifest_of(layout: Layout, sha256: str) -> Manifest | None:
    """Return a manifest of the store, its signature not verified; None where it is not there or not what it was."""
    try:
        data = read_bounded(layout.manifest(sha256) / "manifest.json", MAX_MANIFEST_BYTES)
        return Manifest.from_bytes(data) if hashlib.sha256(data).hexdigest() == sha256 else None
    except SpmError:
        return None


def manifests_of(layout: Layout, manifest: Manifest) -> frozenset[str]:
    """Return the digests of all manifests that any generation had under this one's name and release."""
    return frozenset(
        entry.manifest_sha256
        for step in _readable(layout)
        for entry in step.plugins
        if (entry.name, entry.release) == (manifest.name, manifest.release)
    )


def _readable(layout: Layout) -> list[Generation]:
    found = []
    for number in numbers(layout):
        try:
            found.append(read_generation(layout.root, number))
        except SpmError:
            continue
    return found
