"""Which keys and manifests a registry has met, and the key that is meant by its first digits. Changes nothing."""

from collections.abc import Iterable, Iterator

from keys.ext_signature import read_header
from keys.keyring import LoaderConf
from keys.pinned_keys import Keyring
from manifests.errors import NotFound, SpmError, UsageError
from registry.services.root_terms import Terms, keyids_of
from registry.storage.records import Records
from registry.storage.site import Site

_WHOLE = 64
_CORE_SIGNATURE = "manifest.sig."


def the_key(text: str, keyids: Iterable[str]) -> str:
    """Return the key id that begins so; one that is written whole is returned as it is.

    Raises:
        NotFound: none begins so.
        UsageError: several do.
    """
    if len(text) == _WHOLE:
        return text
    found = sorted({keyid for keyid in keyids if keyid.startswith(text)})
    if not found:
        raise NotFound(
            f"no key here has an id that begins with {text!r:.80}",
            hint="`spm-registry keyring show` and `spm-registry root show` list the keys",
        )
    if len(found) > 1:
        raise UsageError(
            f"{len(found)} keys have ids that begin with {text!r:.80}: {', '.join(found)}", hint="write more digits"
        )
    return found[0]


def root_keyids(terms: Terms) -> tuple[str, ...]:
    """Return the ids of the root keys."""
    return tuple(key.keyid for key in terms.root_keys)


def keyring_keyids(terms: Terms) -> tuple[str, ...]:
    """Return the ids of the keys that the keyring names."""
    return keyids_of(terms.keyring.keyring)


def known_keyids(site: Site, records: Records, terms: Terms) -> frozenset[str]:
    """Return every key that is pinned or revoked, or that has signed a published release."""
    pinned = LoaderConf.read(site.loader_conf).keyring
    named = {*root_keyids(terms), *_named(terms.keyring.keyring), *_named(pinned)}
    return frozenset({*named, *_signers(records)})


def require_published(records: Records, terms: Terms, sha256: str) -> None:
    """Accept the digest of a manifest that was published here, or that is revoked already.

    Raises:
        NotFound: it is none.
    """
    if records.manifest(sha256) is None and sha256 not in terms.keyring.keyring.revoked_manifests:
        raise NotFound(
            f"no manifest with the digest {sha256} was published here",
            hint="`spm info NAME --json` lists the digests, and `spm-registry keyring show` those that are revoked; "
            "`--unknown` revokes it all the same",
        )


def require_known(keyid: str, known: frozenset[str]) -> None:
    """Accept a key that this registry has met.

    Raises:
        NotFound: it has not.
    """
    if keyid not in known:
        raise NotFound(
            f"the key {keyid} is nowhere here: not in the keyring, not in loader.conf, on no published release",
            hint="`spm-registry keyring show` lists the keys; `--unknown` revokes it all the same, "
            "for hosts whose older loader.conf pins it",
        )


def _named(keyring: Keyring) -> tuple[str, ...]:
    return (*keyids_of(keyring), *(revoked.keyid for revoked in keyring.revoked_keys))


def _signers(records: Records) -> Iterator[str]:
    for file_name, data in records.signatures():
        if file_name.startswith(_CORE_SIGNATURE):
            yield file_name.removeprefix(_CORE_SIGNATURE)
            continue
        try:
            yield read_header(data)
        except SpmError:
            # What an older program took; its key can still be written whole.
            continue
