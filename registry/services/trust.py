"""Whom this registry trusts, and what offered manifests that makes good at a publish. Stores nothing."""

from dataclasses import dataclass

from keys.keyring import LoaderConf
from keys.pinned_keys import CoreKey, ExtKey, Keyring
from keys.public_key import KeyId, KeyRole
from keys.root_keyring import RootKeyring
from keys.verified import VerifiedManifest, verify_offered
from manifests.errors import ConfigError, KeyExpired, KeyRevoked, SpmError
from manifests.parts import PluginType
from registry.services.index_signing import require_root
from registry.services.problems import Problem
from registry.services.submission import Submission
from registry.services.times import moment_text
from registry.storage.records import Records
from registry.storage.site import Site

_ANOTHER_KEY = "sign it with a key that is in force, then publish again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The manifests of a publish that keys vouch for, and what is wrong with the others."""

    verified: tuple[VerifiedManifest, ...]
    problems: tuple[Problem, ...]


def trust(site: Site, records: Records) -> LoaderConf:
    """Read whom this registry trusts: the same file, by the same code, as its clients.

    Raises:
        ConfigError: the file is for another registry than the database.
    """
    conf = LoaderConf.read(site.loader_conf)
    if conf.registry_id != records.registry_id():
        raise ConfigError(
            f"{site.loader_conf} is for the registry `{conf.registry_id}`, "
            f"and the database is `{records.registry_id()}`",
            hint="put the old id back: it is inside every signed manifest",
        )
    return conf


def verify_offers(site: Site, records: Records, submission: Submission, now: int) -> Offers:
    """Verify each manifest with the keys of loader.conf and of the signed keyring document.

    Raises:
        ConfigError: there is no root, or loader.conf and the document contradict each other.
    """
    conf, keyring = trust(site, records), _keyring(site, records)
    moment = moment_text(now)
    verified, problems = [], []
    count = len(submission.manifests)
    for number, fetched in enumerate(submission.manifests, start=1):
        prefix = f"manifest {number} of {count}: " if count > 1 else ""
        try:
            offered = verify_offered(fetched, keyring, conf.registry_id)
            _require_keys_of_now(offered, keyring, moment)
            verified.append(offered)
        except SpmError as error:
            problems.append(Problem.of(error, prefix))
    return Offers(verified=tuple(verified), problems=tuple(problems))


def _keyring(site: Site, records: Records) -> Keyring:
    require_root(site, records)
    row = records.signed.current("keyring")
    if row is None:
        raise LookupError("a registry with a root has no keyring document")
    return LoaderConf.read(site.loader_conf).keyring.merged(RootKeyring.from_bytes(row.data).keyring)


def _require_keys_of_now(offered: VerifiedManifest, keyring: Keyring, now: str) -> None:
    """Hold the keys against the registry's own clock: `created` is what the signer says."""
    over = [refused for keyid in offered.keyids if (refused := _over(keyid, keyring, now)) is not None]
    needed = keyring.core_threshold if offered.manifest.type is PluginType.CORE else 1
    if over and len(offered.keyids) - len(over) < needed:
        raise over[0]


def _over(keyid: KeyId, keyring: Keyring, now: str) -> SpmError | None:
    revoked = keyring.revocation_of(keyid)
    if revoked is not None and revoked.covers(now):
        return KeyRevoked(
            f"the key {keyid} was retired at {revoked.since}, and it is {now}: it publishes nothing new",
            hint=_ANOTHER_KEY,
            keyid=keyid,
        )
    expires = _key(keyid, keyring).expires
    if expires is None or now <= expires:
        return None
    return KeyExpired(
        f"the key {keyid} expired at {expires}, and it is {now}: it publishes nothing new",
        hint=_ANOTHER_KEY,
        keyid=keyid,
    )


def _key(keyid: KeyId, keyring: Keyring) -> CoreKey | ExtKey:
    is_core = keyring.role_of(keyid) is KeyRole.CORE
    return keyring.core_key(keyid) if is_core else keyring.ext_key(keyid)
