"""An index whose requirements lead on without end is given up, and says how far it was followed."""

import pytest

from manifests.errors import LimitReached
from manifests.index import Shard
from manifests.names import parse_name
from spm_client.adapters import index
from spm_client.adapters.http import RegistryClient
from spm_client.adapters.index import RegistryIndex


class Endless(RegistryClient):
    """A registry that has every plugin."""

    def document(self, path: str, *, max_bytes: int) -> bytes:
        name = parse_name(path.removeprefix("/v1/index/").removesuffix(".json"))
        return Shard(registry="team.example", name=name).to_bytes()


def test_a_chain_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MAX_SHARDS", 3)
    endless = RegistryIndex(Endless("http://127.0.0.1:9"), "team.example")
    for number in range(3):
        endless.shard(parse_name(f"p{number}"))

    with pytest.raises(LimitReached) as refused:
        endless.shard(parse_name("p3"))

    assert refused.value.reason == "limit:index"
    assert refused.value.message == (
        "the requirements led to 3 plugins of `team.example` with 225 bytes of index, and still to more; "
        "the limits are 3 plugins, 268435456 bytes and 600 s"
    )
    assert endless.shard(parse_name("p1")).name == "p1"
