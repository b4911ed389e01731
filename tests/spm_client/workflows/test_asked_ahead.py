"""What an install asks of served registries ahead: what one plugin requires comes together, and each thing once."""

import re
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.served_files import ServedFiles
from tests.fakes.two_registries import TwoRegistries, two_registries
from tests.spm_client.workflows.several import put, registries

SHARD = re.compile(r"/v1/tuf/targets/index/[0-9a-f]{64}\.([a-z0-9-]+)\.json")


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoRegistries]:
    with two_registries(tmp_path / "store") as made:
        yield made


def together(served: ServedFiles, *names: str) -> threading.Barrier:
    """Let the shards of these plugins be answered only once all of them have been asked for."""
    gate, files = threading.Barrier(len(names)), served.files

    def answered(path: str) -> bytes | None:
        shard = SHARD.fullmatch(path)
        if shard and shard[1] in names:
            gate.wait(10)
        return files(path)

    served.files = answered
    return gate


def shards(served: ServedFiles) -> Counter[str]:
    return Counter(found[1] for path, _ in served.seen if (found := SHARD.fullmatch(path)))


def test_what_is_wished_and_what_that_requires_comes_together(two: TwoRegistries) -> None:
    for name in ("tone", "beat", "mel"):
        two.own.publish(name)
    two.own.publish("chord", requires=["tone", "beat", "mel"])
    two.own.publish("song")
    together(two.own_served, "chord", "song")
    together(two.own_served, "tone", "beat", "mel")

    installed = put(two, "chord", "song")

    assert set(registries(installed.generation)) == {"beat", "chord", "mel", "song", "tone"}
    assert shards(two.own_served) == Counter(["beat", "chord", "mel", "song", "tone"])


def test_what_another_registry_s_plugin_requires_comes_together_from_where_it_belongs(two: TwoRegistries) -> None:
    for name in ("tone", "beat"):
        two.own.publish(name)
    for name in ("px-blur", "px-crop"):
        two.px.publish(name)
    two.px.publish("px-scale", requires=["tone", "beat", "px-blur", "px-crop"])
    together(two.own_served, "tone", "beat")
    together(two.px_served, "px-blur", "px-crop")

    installed = put(two, "px-scale")

    assert set(registries(installed.generation)) == {"beat", "px-blur", "px-crop", "px-scale", "tone"}
    assert shards(two.own_served) == Counter(["beat", "tone"])
    assert shards(two.px_served) == Counter(["px-blur", "px-crop", "px-scale"])
