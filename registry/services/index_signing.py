"""When the index is signed: at a publish, at a yank, and as it grows old. How is in `signed_index`.

That one is imported at the moment of signing: a worker that only reads needs neither tuf nor cryptography.
"""

from manifests.errors import ConfigError, SpmError
from registry.storage.records import Records
from registry.storage.site import Site


def require_root(site: Site, records: Records) -> None:
    """Refuse where no root was adopted: nobody could trust what would be published.

    Raises:
        ConfigError: there is none.
    """
    if records.signed.version("root") == 0:
        raise ConfigError(
            f"the registry in {site.root} has no root of trust, without which no client can verify its index",
            hint=_way_to_a_root(site, records),
        )


def _way_to_a_root(site: Site, records: Records) -> str:
    first = f"make one: `spm-registry root init FILE.pub --root {site.root}`"
    if not (site.root / "ceremony").exists():
        return first
    from registry.services.root_state import look_within

    try:
        missing = max((need.missing for need in look_within(site, records).needs), default=None)
    except SpmError:
        missing = None
    if missing is None:
        return first
    more = "1 more signature" if missing == 1 else f"{missing} more signatures"
    return f"a draft of root 1 waits for {more}: `spm-registry root show --root {site.root}`"


def sign_shard(site: Site, records: Records, name: str, now: int) -> None:
    """Sign a plugin's shard as it is now into the index, inside the transaction that changed it.

    Raises:
        ConfigError: no root was adopted, or the online key that it names is not here.
    """
    require_root(site, records)
    from registry.services import signed_index
    from registry.services.online_key import signer_with

    signed_index.publish_shard(records, signer_with(site, signed_index.online_keyid(records)), name, now)


def renew_index(site: Site, records: Records, now: int) -> None:
    """Sign anew what has lived half its life; nothing where somebody else was faster.

    Raises:
        ConfigError: the online key that the root names is not here.
    """
    if not records.signed.due(now):
        return
    from registry.services import signed_index
    from registry.services.online_key import signer_with

    signed_index.renew(records, signer_with(site, signed_index.online_keyid(records)), now)
