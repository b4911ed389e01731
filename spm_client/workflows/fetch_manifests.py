"""Manifests with their signatures: read where the store has them, else fetched, and verified in full either way.

A manifest lies under its digest and its author's signature is verified anew, so it does not matter who kept it. Where
what the store has does not verify, the registry is asked as if nothing had been there.
"""

from collections.abc import Callable, Sequence

from keys.keyring import LoaderConf
from keys.verified import Expected, FetchedManifest, VerifiedManifest, verify_manifest
from manifests.errors import SpmError
from manifests.index import ReleaseEntry, VariantEntry
from manifests.names import PluginName
from runtime.generation import read_bounded
from spm_client.adapters.at_once import at_once
from spm_client.adapters.index import RegistryIndex, require_agreement, signature_files
from spm_client.progress import Advance
from spm_client.resolve import Pin
from spm_client.store.layout import Layout


def fetch_verified(
    index: RegistryIndex, conf: LoaderConf, name: PluginName, release: ReleaseEntry, variant: VariantEntry
) -> VerifiedManifest:
    """Return the manifest of a variant that the index lists, its author's signature verified.

    Raises: what `verify_manifest` raises; Mix where the index says of it what no author signed.
    """
    return _verified(index.fetch_manifest(release, variant), conf, name, release, variant)


def fetch_all_verified(
    pins: Sequence[Pin],
    fetch: Callable[[Pin], FetchedManifest],
    conf: Callable[[Pin], LoaderConf],
    layout: Layout,
    advance: Advance,
) -> dict[PluginName, VerifiedManifest]:
    """Return the manifest of each pin, verified; several are fetched at once.

    Raises: the first refusal in the order of the pins, as `fetch_verified`.
    """
    held = {pin.name: _held(pin, conf(pin), layout) for pin in pins}
    found: dict[PluginName, VerifiedManifest] = {}
    missing = [pin for pin in pins if held[pin.name] is None]
    with at_once(fetch, missing) as answers:
        fetched = {pin.name: answer for pin, answer in zip(missing, answers, strict=True)}
        for pin in pins:
            found[pin.name] = held[pin.name] or _of_pin(fetched[pin.name].result(), pin, conf(pin))
            advance(1)
    return found


def _held(pin: Pin, conf: LoaderConf, layout: Layout) -> VerifiedManifest | None:
    """Return what the store has, where it has every signature that the index lists and all of it verifies."""
    folder = layout.manifest(pin.variant.manifest_sha256)
    try:
        data = read_bounded(folder / "manifest.json", pin.variant.manifest_size)
        limits = signature_files(pin.release, pin.variant)
        signatures = {name: read_bounded(folder / name, limit) for name, limit in limits.items()}
        return _of_pin(FetchedManifest(data=data, signatures=signatures), pin, conf)
    except SpmError:
        return None


def _of_pin(fetched: FetchedManifest, pin: Pin, conf: LoaderConf) -> VerifiedManifest:
    return _verified(fetched, conf, pin.name, pin.release, pin.variant)


def _verified(
    fetched: FetchedManifest, conf: LoaderConf, name: PluginName, release: ReleaseEntry, variant: VariantEntry
) -> VerifiedManifest:
    expected = Expected(
        registry=conf.registry_id,
        name=name,
        version=release.version,
        manifest_sha256=variant.manifest_sha256,
        variant_tag=variant.variant.tag if variant.variant else None,
        type=release.type,
    )
    verified = verify_manifest(fetched, conf.keyring, expected)
    require_agreement(release, verified.manifest)
    return verified
