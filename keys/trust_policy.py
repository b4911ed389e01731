"""Which keys and delegations signed metadata may name, beyond what TUF itself asks. Verifies no signature.

STRICT is what spm lives by: one kind of key, known by its material, and no way to hand on what a role was given.
TUF_ANY leaves all that TUF allows, and is for the adapter of TUF's own conformance suite alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from securesystemslib.signer import Key
from tuf.api.metadata import Role, Root, Targets

from keys.public_key import keyid_of_pem
from keys.root_keyring import KEYRING_TARGET
from keys.shown import shown
from manifests.errors import AlgorithmRefused, BadResponse, KeyRefused, KeyRoleMismatch, Mix, SpmError

REGISTRY_MEMBER = "x-spm-registry"
"""A member that the ceremony adds to root and targets: the id of the registry whose they are."""
KEY_KIND = "ecdsa/ecdsa-sha2-nistp256"
_OFFLINE, _ONLINE = ("root", "targets"), ("snapshot", "timestamp")
_HINT = "tell the registry's administrator: this was not made by `spm-registry root`"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPolicy:
    """How metadata is read: strictly as spm writes it, or with all that TUF allows."""

    is_strict: bool
    registry: str | None = None
    """Whose root and targets they must be: one root key may serve two registries, and their files must not mix."""

    def of(self, registry: str) -> "KeyPolicy":
        """Return the policy for the metadata of one registry."""
        return replace(self, registry=registry)

    def check_root(self, root: Root) -> None:
        """Accept a root whose keys and thresholds are as spm makes them.

        Raises: AlgorithmRefused for a key that is not a P-256 key; KeyRefused where a key or threshold means nothing;
        KeyRoleMismatch for an online key that signs what offline keys sign; BadResponse.
        """
        if not self.is_strict:
            return
        what = f"root {root.version}"
        self._require_registry(what, root)
        _require_keys(what, root.keys)
        for name, role in sorted(root.roles.items()):
            _require_role(what, f"`{name}`", role, root.keys)
        _require_apart(what, root)
        if root.consistent_snapshot is not True:
            raise BadResponse(f"{what} lets files change under a client: it has no consistent snapshots", hint=_HINT)

    def check_targets(self, targets: Targets) -> None:
        """Accept top-level targets that list the keyring, and hand on to hash bins alone.

        Raises: as `check_root`.
        """
        if not self.is_strict:
            return
        what = f"targets {targets.version}"
        self._require_registry(what, targets)
        if KEYRING_TARGET not in targets.targets:
            raise BadResponse(f"{what} are not of a registry of spm: they list no keyring", hint=_HINT)
        bins = targets.delegations.succinct_roles if targets.delegations else None
        if targets.delegations is None or bins is None:
            raise BadResponse(f"{what} are not of a registry of spm: they hand the shards to no hash bins", hint=_HINT)
        _require_keys(what, targets.delegations.keys)
        _require_role(what, "the bins", bins, targets.delegations.keys)

    def check_bin(self, name: str, targets: Targets) -> None:
        """Accept a bin that lists shards itself: the online key hands nothing on.

        Raises: BadResponse.
        """
        if self.is_strict and targets.delegations is not None:
            raise BadResponse(f"the bin `{name}` {targets.version} hands shards on, which no bin may", hint=_HINT)

    def _require_registry(self, what: str, signed: Root | Targets) -> None:
        found = signed.unrecognized_fields.get(REGISTRY_MEMBER)
        if self.registry is not None and found != self.registry:
            whose = "says of no registry that it is its own" if found is None else f"is of the registry {shown(found)}"
            raise Mix(
                f"{what} {whose}, loader.conf names `{self.registry}`",
                hint="check `registry.url` and `registry.id` in loader.conf; one root key may serve several registries",
                expected=self.registry,
            )


STRICT = KeyPolicy(is_strict=True)
TUF_ANY = KeyPolicy(is_strict=False)


def _require_keys(what: str, keys: Mapping[str, Key]) -> None:
    for keyid, key in keys.items():
        if f"{key.keytype}/{key.scheme}" != KEY_KIND:
            raise AlgorithmRefused(
                f"{what} has a key of the kind {shown(f'{key.keytype}/{key.scheme}')[1:-1]}: "
                f"spm takes {KEY_KIND} alone",
                hint=_HINT,
                keyid=keyid[:64],
            )
        _require_material(what, keyid, key)


def _require_material(what: str, keyid: str, key: Key) -> None:
    try:
        material = keyid_of_pem(str(key.keyval.get("public")).encode("utf-8", "replace"))
    except SpmError as error:
        raise AlgorithmRefused(f"{what} has the key {shown(keyid)}: {error.message}", keyid=keyid[:64]) from error
    # A key that is known by its material cannot be there twice, so that it never counts twice.
    if material != keyid:
        raise KeyRefused(
            f"{what} has a key under the id {shown(keyid)} whose material has the id {material}",
            reason="key-unknown",
            hint=_HINT,
            keyid=keyid[:64],
        )


def _require_role(what: str, name: str, role: Role, keys: Mapping[str, Key]) -> None:
    unknown = [keyid for keyid in role.keyids if keyid not in keys]
    if unknown:
        raise KeyRefused(f"{what} gives {name} to the key {shown(unknown[0])}, which it does not hold", hint=_HINT)
    if type(role.threshold) is not int or not 1 <= role.threshold <= len(role.keyids):
        raise KeyRefused(
            f"{what} asks for {shown(role.threshold)} signatures over {name}, and has {len(role.keyids)} of its keys",
            reason="threshold-short",
            hint=_HINT,
        )


def _require_apart(what: str, root: Root) -> None:
    offline = {keyid for name in _OFFLINE for keyid in root.roles[name].keyids}
    for name in _ONLINE:
        for keyid in root.roles[name].keyids:
            if keyid in offline:
                raise KeyRoleMismatch(
                    f"{what} lets the online key {keyid} sign what only offline keys may", hint=_HINT, keyid=keyid
                )
