"""Publishing: what is stored, what anyone can read afterwards, and that saying it twice changes nothing."""

import pytest

from manifests.batching import BatchPolicy
from manifests.index import Shard
from tests.registry.team import FILES, Team, digest, manifest_of, problem


def test_a_published_release_is_readable_whole(team: Team) -> None:
    token = team.token("maria", names=("audio-*",))
    manifest = manifest_of()

    committed = team.publish(token, manifest)

    assert committed.status_code == 201
    expected = {"published": True, "name": "audio-encoder", "version": "1.0.0", "serial": 1, "warnings": []}
    assert committed.json == expected
    shard = Shard.from_bytes(team.ask("GET", "/v1/index/audio-encoder.json").data)
    (entry,) = shard.releases
    (variant,) = entry.variants
    assert (entry.version, variant.signatures) == (manifest.version, (team.ext.public.keyid,))
    assert team.ask("GET", f"/v1/manifests/{variant.manifest_sha256}").data == manifest.to_bytes()
    token_file = team.ask("GET", f"/v1/manifests/{variant.manifest_sha256}/manifest.jws")
    assert token_file.data.count(b".") == 2
    for data in FILES.values():
        assert team.ask("GET", f"/v1/blobs/{digest(data)}").data == data


def test_a_half_publish_is_invisible(team: Team) -> None:
    token = team.token("maria")
    opened = team.submit(token, manifest_of())
    for data in FILES.values():
        team.send(token, opened.get_json()["upload"], data)

    shard = team.ask("GET", "/v1/index/audio-encoder.json")
    manifest = team.ask("GET", f"/v1/manifests/{digest(manifest_of().to_bytes())}")
    blob = team.ask("GET", f"/v1/blobs/{digest(FILES['weights.bin'])}")

    assert [shard.status_code, manifest.status_code, blob.status_code] == [404, 404, 404]
    assert problem(shard)["detail"] == "this registry has no plugin `audio-encoder`"


@pytest.mark.parametrize("mode", ["none", "static"])
def test_what_may_be_waste_is_published_with_a_warning(team: Team, mode: str) -> None:
    manifest = manifest_of(batch_policy=BatchPolicy.from_value(mode))

    committed = team.publish(team.admin, manifest)
    again = team.submit(team.admin, manifest)

    assert (committed.status_code, again.status_code) == (201, 200)
    assert committed.get_json()["warnings"] == [
        {
            "type": "batch-policy-missing",
            "detail": f"`audio-encoder` 1.0.0 has the batch policy `{mode}`; whether calls queue is not known before "
            "it runs; where they do, `batch_policy: adaptive` runs them together",
        }
    ]
    assert again.get_json()["warnings"] == committed.get_json()["warnings"]


def test_a_waived_doubt_is_no_warning(team: Team) -> None:
    waivers = (("batch-policy-missing", "one caller only, by design"),)

    committed = team.publish(team.admin, manifest_of(batch_policy=BatchPolicy.from_value("none"), waivers=waivers))

    assert committed.get_json()["warnings"] == []
