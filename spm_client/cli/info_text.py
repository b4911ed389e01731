"""What `spm info` tells, in words for a person: as wide as the terminal, the newest first. Judges nothing."""

import textwrap
from typing import TYPE_CHECKING

from manifests.batching import BatchPolicy
from manifests.index import ReleaseEntry
from manifests.target import Target
from spm_client.render import fitted, size, terminal_width
from spm_client.resolve.fit import tag_of
from spm_client.workflows.about import NOT_PINNED, Signer

if TYPE_CHECKING:
    from spm_client.cli.info_command import Told

WIDTH = 100
_ABOUT = 11


def show(told: "Told") -> None:
    shard, release = told.shard, told.release
    if release is None:
        print(f"{shard.name} has no release in {shard.registry}")
        return
    print(_wrapped(f"{shard.name} {release.version} ({release.type.value}): {release.summary}", "  "))
    for about, text in _facts(told, release):
        print(_wrapped(f"{about:{_ABOUT}}{text}", " " * _ABOUT))
    if len(told.variants) > 1 or release.variants[0].variant is not None:
        print(f"\n{_variants(told, release)}")
    print(f"\n{_releases(told)}")


def _facts(told: "Told", release: ReleaseEntry) -> list[tuple[str, str]]:
    facts = [("registry", told.shard.registry), ("published", _moment(release.published) or "not said")]
    if release.yanked:
        facts.append(("yanked", release.yanked))
    facts += [
        ("installed", _installed(told)),
        ("devices", ", ".join(map(str, release.device_affinity or ())) or "none named: it runs wherever it is put"),
        ("batch", _batch(release.batch_policy)),
        ("requires", "; ".join(_requires(release))),
    ]
    facts += [("signed by" if not place else "", _signer(signer)) for place, signer in enumerate(told.signers)]
    return [*facts, ("target", _target(told.target)), *_choice(told)]


def _installed(told: "Told") -> str:
    entry = told.installed
    if entry is None:
        return "no"
    wanted = (*(("you asked for it",) if entry.requested else ()), *(f"{name} requires it" for name in told.dependants))
    fallback = f"; (fallback) {entry.fallback}" if entry.fallback else ""
    return f"{entry.release}: {', '.join(wanted)}{fallback}"


def _choice(told: "Told") -> list[tuple[str, str]]:
    """Tell what an install would do, and the command that takes what it would not take unasked."""
    choice, name = told.choice, told.shard.name
    command = " ".join(word for word in (f"spm install {name}", told.target_option) if word)
    if choice.release is None or choice.variant is None:
        return [("install", f"stops: {choice.why}")]
    taken = f"{choice.release.version} (`{tag_of(choice.variant)}`)"
    if not choice.is_fallback:
        return [("install", f"takes {taken}")]
    stop = "since it would move back" if choice.is_back else "since there is only a fallback"
    return [
        ("install", f"stops, {stop}: {choice.why}"),
        ("", f"`{command} --accept-fallback {name}` takes {taken} instead"),
    ]


def _variants(told: "Told", release: ReleaseEntry) -> str:
    rows: list[tuple[str, ...]] = []
    for one in told.variants:
        is_taken = release == told.choice.release and one.entry == told.choice.variant
        fit = f"no: {one.why}" if one.why else "fits, and is the one to take" if is_taken else "fits"
        rows.append((tag_of(one.entry), size(one.entry.blobs_size), f"not known: {one.why}" if one.is_unknown else fit))
    return fitted((f"VARIANT OF {release.version}", "SIZE", "ON THIS TARGET"), rows, _width(), spare=("SIZE",))


def _releases(told: "Told") -> str:
    """Return all releases; what leaves too little room for the verdict is left out, and `--json` still has it."""
    header = ("VERSION", "PUBLISHED", "SIZE", "DEVICES", "BATCH", "REQUIRES", "ON THIS TARGET")
    rows = [_row(one, told.fits[one.version.text]) for one in reversed(told.shard.releases)]
    return fitted(header, rows, _width(), spare=("REQUIRES", "DEVICES", "PUBLISHED", "BATCH"))


def _row(release: ReleaseEntry, fit: str) -> tuple[str, ...]:
    requires = [f"{name} {wanted}" for name, wanted in release.requires.plugins]
    requires += [f"torch {release.requires.torch}"] if release.requires.torch else []
    return (
        release.version.text,
        release.published[:10] if release.published else "-",
        size(sum(variant.blobs_size for variant in release.variants)),
        ",".join(map(str, release.device_affinity or ())) or "-",
        release.batch_policy.mode.value if release.batch_policy else "-",
        "; ".join(requires) or "-",
        f"yanked: {release.yanked}" if release.yanked else fit,
    )


def _width() -> int:
    return terminal_width() or WIDTH


def _wrapped(text: str, indent: str) -> str:
    width = min(_width(), WIDTH)
    return textwrap.fill(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _moment(moment: str | None) -> str | None:
    return f"{moment[:10]} {moment[11:16]} UTC, by the registry's clock" if moment else None


def _batch(policy: BatchPolicy | None) -> str:
    if policy is None:
        return "none declared"
    if policy == BatchPolicy(mode=policy.mode):
        return policy.mode.value
    most = f"at most {policy.max_batch_size} in a batch, waiting {policy.max_latency_ms} ms at most"
    return f"{policy.mode.value}: {most}, for {policy.objective.value}"


def _requires(release: ReleaseEntry) -> list[str]:
    requires = [f"{name} {wanted}" for name, wanted in release.requires.plugins]
    facts = (("torch", release.requires.torch), ("Python", release.requires.python))
    requires += [f"{what} {wanted}" for what, wanted in facts if wanted]
    requires += list(release.requires.packages)
    return [*requires, f"Seedance contract {release.seedance_version}"]


def _signer(signer: Signer) -> str:
    revoked = f", REVOKED as {signer.revoked}" if signer.revoked else ""
    if signer.role is None:
        return f"{signer.keyid[:16]}…, {NOT_PINNED}{revoked}"
    whose = f" of `{signer.publisher}`" if signer.publisher else ""
    where = "loader.conf" if signer.origin == "loader.conf" else "the registry's keyring"
    return f"{signer.keyid[:16]}…, {signer.role} key{whose}, pinned in {where}{revoked}"


def _target(target: Target) -> str:
    torch = f"torch {target.torch.version}" if target.torch else "no torch"
    devices = ", ".join(f"{one.id} ({one.sm})" if one.sm else one.id for one in target.devices)
    return f"{target.os} {target.cpu}, Python {target.python}, {torch}; {devices}"
