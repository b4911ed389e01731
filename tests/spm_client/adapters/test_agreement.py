"""The index, which no author signed, held against the manifest, which one did: each member that differs is a mix."""

from dataclasses import replace
from typing import Any

import pytest

from manifests.batching import BatchPolicy
from manifests.devices import parse_affinity
from manifests.errors import Mix
from manifests.index import ReleaseEntry, VariantEntry
from manifests.names import PluginName
from manifests.parts import PluginType, Requires
from manifests.ranges import Range
from manifests.versions import Version
from spm_client.adapters.index import require_agreement
from tests.keys.builders import manifest

MANIFEST = manifest(
    requires=Requires(plugins=((PluginName("log-mel"), Range.parse("^1.0")),)), device_affinity=parse_affinity(["cpu"])
)
VARIANT = VariantEntry(variant=None, manifest_sha256="ab" * 32, manifest_size=1, signatures=(), blobs_size=1)
LISTED = ReleaseEntry.of(MANIFEST, (VARIANT,))


def test_an_index_that_says_the_same_agrees() -> None:
    require_agreement(LISTED, MANIFEST)


def test_a_yank_is_the_registry_s_own_word() -> None:
    require_agreement(replace(LISTED, yanked="it leaks"), MANIFEST)


@pytest.mark.parametrize(
    ("change", "member", "listed", "signed"),
    [
        ({"version": Version.parse("1.3.0")}, "version", '"1.3.0"', '"1.2.0"'),
        ({"version": Version.parse("1.2.0+b")}, "version", '"1.2.0+b"', '"1.2.0"'),
        ({"type": PluginType.CORE}, "type", '"core"', '"ext"'),
        ({"seedance_version": Range.parse(">=1.0")}, "seedance_version", '">=1.0"', '">=2.0,<3"'),
        ({"summary": "Does more"}, "summary", '"Does more"', '"Turns sound into vectors"'),
        ({"summary": ""}, "summary", "nothing", '"Turns sound into vectors"'),
        ({"requires": Requires()}, "requires", "{}", '{"plugins": {"log-mel": "^1.0"}}'),
        ({"device_affinity": None}, "device_affinity", "nothing", '["cpu"]'),
        ({"device_affinity": parse_affinity(["cuda", "cpu"])}, "device_affinity", '["cuda", "cpu"]', '["cpu"]'),
        ({"batch_policy": BatchPolicy.from_value("none")}, "batch_policy", '"none"', "nothing"),
    ],
)
def test_a_member_that_differs_is_a_mix(change: dict[str, Any], member: str, listed: str, signed: str) -> None:
    with pytest.raises(Mix) as refused:
        require_agreement(replace(LISTED, **change), MANIFEST)

    assert (refused.value.message, refused.value.hint, refused.value.context) == (
        f"the index and the signed manifest of `audio-encoder` 1.2.0 differ in `{member}`: {listed} and {signed}",
        "the registry's index was altered: ask its administrator",
        {"member": member},
    )


def test_the_first_member_in_the_alphabet_is_named() -> None:
    with pytest.raises(Mix) as refused:
        require_agreement(replace(LISTED, summary="Does more", device_affinity=None), MANIFEST)

    assert refused.value.context == {"member": "device_affinity"}
