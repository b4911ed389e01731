"""What is adopted and what is being signed: read from a registry or from a carried folder. Changes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from manifests.errors import NotFound, ThresholdNotMet
from registry.services import root_draft
from registry.services.adopted_chain import require_chain
from registry.services.draft_folder import holds_draft, no_draft, read_adopted, read_draft
from registry.services.root_draft import Adopted, Draft, Need
from registry.services.root_terms import SigningKey
from registry.storage.records import Records
from registry.storage.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceremony:
    """What is adopted and what is being signed, at one moment."""

    folder: Path
    adopted: Adopted | None
    draft: Draft | None

    @property
    def needs(self) -> tuple[Need, ...]:
        """Return who must sign the draft, and who has."""
        return () if self.draft is None else root_draft.needs(self.draft, self.adopted)

    def draft_there(self) -> Draft:
        """Return the draft.

        Raises:
            NotFound: there is none.
        """
        if self.draft is None:
            raise no_draft(self.folder)
        return self.draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A draft after one command: adopted, or waiting in its folder for more keys."""

    folder: Path
    before: Adopted | None
    draft: Draft
    is_adopted: bool
    dropped: tuple[SigningKey, ...] = ()
    is_online_key_dropped: bool = False

    @property
    def needs(self) -> tuple[Need, ...]:
        """Return who had to sign, and who has."""
        return root_draft.needs(self.draft, self.before)


def folder_of(site: Site) -> Path:
    """Return where a registry's draft lies."""
    return site.root / "ceremony"


def look(site: Site) -> Ceremony:
    """Return what is adopted and what is being signed."""
    with site.database.reading() as records:
        return look_within(site, records)


def look_at_copy(folder: Path) -> Ceremony:
    """Return what a carried draft says, on a machine without the registry.

    Raises:
        NotFound: there is no draft.
        ConfigSyntax: it is not a whole one.
        SpmError: what it calls adopted was not signed by those who may.
    """
    if not holds_draft(folder):
        raise NotFound(
            f"no draft at {folder}",
            hint="a copy is the registry's folder `ceremony`, which is there while a draft waits",
        )
    made = Ceremony(folder=folder, adopted=read_adopted(folder), draft=read_draft(folder))
    if made.adopted is not None:
        require_chain(made.adopted)
    root_draft.require_whole(made.draft_there(), made.adopted)
    return made


def look_within(site: Site, records: Records) -> Ceremony:
    """Return what is adopted and what is being signed, inside a transaction."""
    rows = [records.signed.current(role) for role in ("root", "targets", "keyring")]
    root, targets, keyring = (b"" if row is None else row.data for row in rows)
    adopted = Adopted(root=root, targets=targets, keyring=keyring) if root else None
    folder = folder_of(site)
    draft = read_draft(folder) if holds_draft(folder) else None
    # Cut short between a commit and the removal, a command leaves the draft that it adopted.
    is_over = draft is not None and adopted is not None and _is_adopted(draft, adopted)
    return Ceremony(folder=folder, adopted=adopted, draft=None if is_over else draft)


def _is_adopted(draft: Draft, adopted: Adopted) -> bool:
    root = None if draft.root is None else adopted.root
    return draft.says_the_same_as(Draft(root=root, targets=adopted.targets, keyring=adopted.keyring))


def require_complete(found: Ceremony) -> None:
    """Refuse a draft that too few have signed.

    Raises:
        ThresholdNotMet: it is one.
    """
    short = [need for need in found.needs if need.missing]
    if short:
        raise ThresholdNotMet(
            "the draft cannot be adopted: " + "; ".join(describe(need) for need in short),
            hint=f"`spm-registry root sign {key_file_to_sign(short)}`",
            missing=[{"document": need.document, "missing": need.missing} for need in short],
        )


def key_file_to_sign(asked: Sequence[Need]) -> str:
    """Return the file name of a key that is still to sign; KEY where nobody knows it."""
    names = [key.name for need in asked if need.missing for key in need.unsigned if key.name]
    return f"{names[0]}.key" if names else "KEY"


def describe(need: Need) -> str:
    """Say in words how far a document is from enough signatures."""
    asked = "1 signature" if need.threshold == 1 else f"{need.threshold} signatures"
    said = (
        f"{need.document} {need.version} has {len(need.signed)} of the {asked} that root {need.root_version} asks for"
    )
    if not need.missing:
        return said
    who = " or ".join(f"`{key.name}` {key.keyid}" for key in need.unsigned)
    return f"{said}; {need.missing} more must come from {who}"
