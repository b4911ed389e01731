"""A plugin's shard of the index, read from and written to the records. Chooses no release."""

import hashlib

from manifests.errors import TooBig
from manifests.index import MAX_SHARD_BYTES, Shard
from manifests.names import parse_name
from registry.services.searching import listing_of
from registry.storage.records import Records
from registry.storage.rows import ShardRow


def read_shard(records: Records, name: str) -> Shard:
    """Return a plugin's shard; an empty one for a name that nobody has published."""
    row = records.shard(name)
    if row is None:
        return Shard(registry=records.registry_id(), name=parse_name(name), releases=())
    return Shard.from_bytes(row.data)


def write_shard(records: Records, shard: Shard, now: int) -> None:
    """Store a shard as the bytes that will be served; the one before is kept for those who were just led to it.

    Raises:
        TooBig: it has more releases than a client would read.
    """
    data = shard.to_bytes()
    if len(data) > MAX_SHARD_BYTES:
        raise TooBig(
            f"the index of `{shard.name}` would have {len(data)} bytes, more than the {MAX_SHARD_BYTES} allowed"
        )
    earlier = records.shard(shard.name)
    if earlier is not None:
        records.signed.keep_shard(earlier, now)
    records.put_shard(ShardRow(name=shard.name, data=data, etag=f'"{hashlib.sha256(data).hexdigest()}"'))
    if (listing := listing_of(shard)) is not None:
        records.listings.put(listing)
