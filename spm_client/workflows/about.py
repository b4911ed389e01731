"""What a person wants to know of one plugin: what fits a target, what an install would take, who signed. Pure.

It looks at the plugin alone: what it requires, and what is installed beside it, only an install's plan takes in. What
is installed of it is never moved back unasked, here as in an install.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from keys.pinned_keys import Keyring
from keys.public_key import KeyId, KeyRole
from manifests.errors import NotFound
from manifests.fit import Misfit, first_doubt, release_doubt, variant_doubt
from manifests.index import ReleaseEntry, Shard, VariantEntry
from manifests.parts import Variant
from manifests.target import Target
from manifests.versions import Version
from spm_client.resolve.fit import Fits, judge, tag_of
from spm_client.workflows.consent import moved_back

NOT_PINNED = "not pinned here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What an install of a plugin alone would do: take a release, by consent where it is a fallback, or stop.

    `release` None: nothing of it can be taken. `why` is what stands against taking the newest unasked; None where that
    is done.
    """

    release: ReleaseEntry | None
    variant: VariantEntry | None = None
    why: str | None = None
    is_fallback: bool = False
    is_back: bool = False
    """It is older than what is installed, and so is taken only by consent."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": self.release.version.text if self.release else None,
            "variant": tag_of(self.variant) if self.variant else None,
            "fallback": self.is_fallback,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One variant of a release against a target; `why` None: it fits."""

    entry: VariantEntry
    why: str | None
    is_unknown: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "tag": tag_of(self.entry),
            "manifest_sha256": self.entry.manifest_sha256,
            "size": self.entry.blobs_size,
            "fits": None if self.is_unknown else self.why is None,
            "why": self.why,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """A key that signed, and what this host knows of it: `role` None where it is pinned nowhere here."""

    keyid: str
    role: str | None = None
    publisher: str | None = None
    origin: str | None = None
    """Where it is pinned: `loader.conf`, or the registry's `keyring`."""
    revoked: str | None = None

    def to_dict(self) -> dict[str, Any]:
        names = ("keyid", "role", "publisher", "origin", "revoked")
        return {name: getattr(self, name) for name in names}


def choose(shard: Shard, target: Target, installed: Version | None = None) -> Choice:
    """Return what an install of the plugin alone would do: take the newest, unless that moves it back, or stop."""
    choice = _newest(shard, target)
    if choice.release is None or installed is None:
        return choice
    back = moved_back(choice.release.version, installed, shard.releases)
    if back is None:
        return choice
    return replace(choice, why="; ".join(filter(None, (back, choice.why))), is_fallback=True, is_back=True)


def _newest(shard: Shard, target: Target) -> Choice:
    """Return what an install would take where none is installed, by the rule of the design."""
    offered = [release for release in reversed(shard.releases) if release.yanked is None]
    final = [release for release in offered if not release.version.is_prerelease]
    if not final:
        why = "all its releases are pre-releases" if offered else "all its releases are yanked"
        return Choice(release=None, why=why if shard.releases else "it has no release")
    against: str | None = None
    for release in final:
        verdict = judge(release, target)
        if isinstance(verdict, Fits):
            against = against or _passed_over(release, verdict)
            return Choice(release=release, variant=verdict.variant, why=against, is_fallback=against is not None)
        against = against or f"{release.version} {verdict.text}"
        if not isinstance(verdict, Misfit):
            return Choice(release=None, why=f"{release.version} {verdict.text}")
    return Choice(release=None, why=against)


def variants_of(release: ReleaseEntry, target: Target, revoked: Collection[str]) -> tuple[Judged, ...]:
    """Judge each variant of a release by itself, what the release asks of every target first."""
    general = release_doubt(release.seedance_version, release.requires, target)
    judged = []
    for entry in release.variants:
        doubt = first_doubt((general, variant_doubt(entry.variant or Variant(), target)))
        if entry.manifest_sha256 in revoked:
            doubt = Misfit("artifact-revoked", "is revoked by the registry's root keys")
        is_unknown = doubt is not None and not isinstance(doubt, Misfit)
        judged.append(Judged(entry=entry, why=doubt.text if doubt else None, is_unknown=is_unknown))
    return tuple(judged)


def signers_of(release: ReleaseEntry, pinned: Keyring, trusted: Keyring) -> tuple[Signer, ...]:
    """Return whose keys signed: `pinned` are those of loader.conf, `trusted` those with the registry's keyring."""
    keyids = sorted({keyid for variant in release.variants for keyid in variant.signatures})
    return tuple(_signer(KeyId(keyid), pinned, trusted) for keyid in keyids)


def find_release(shard: Shard, version: Version) -> ReleaseEntry:
    """Return one release.

    Raises: NotFound naming those that there are.
    """
    release = shard.find(version)
    if release is None:
        raise NotFound(
            f"`{shard.name}` has no release {version} in `{shard.registry}`",
            hint=f"it has {_listed([one.version.text for one in reversed(shard.releases)])}",
            version=version.text,
        )
    return release


def _signer(keyid: KeyId, pinned: Keyring, trusted: Keyring) -> Signer:
    role = trusted.role_of(keyid)
    revocation = trusted.revocation_of(keyid)
    return Signer(
        keyid=keyid,
        role=role.value if role else None,
        publisher=trusted.ext_key(keyid).publisher if role is KeyRole.EXT else None,
        origin=("loader.conf" if pinned.role_of(keyid) else "keyring") if role else None,
        revoked=revocation.reason.value if revocation else None,
    )


def _passed_over(release: ReleaseEntry, verdict: Fits) -> str | None:
    told = [f"`{tag_of(entry)}` {misfit.text}" for entry, misfit in verdict.passed_over]
    return f"of {release.version}, {'; '.join(told)}" if told else None


def _listed(versions: Sequence[str], most: int = 8) -> str:
    more = f" and {len(versions) - most} more" if len(versions) > most else ""
    return (", ".join(versions[:most]) or "none") + more
