"""Publishing: what is stored, what anyone can read afterwards, and that saying it twice changes nothing."""

from manifests.index import Shard
from tests.registry.team import FILES, Team, digest, manifest_of, problem


def test_a_published_release_is_readable_whole(team: Team) -> None:
    token = team.token("maria", names=("audio-*",))
    manifest = manifest_of()

    committed = team.publish(token, manifest)

    assert committed.status_code == 201
    assert committed.json == {"published": True, "name": "audio-encoder", "version": "1.0.0", "serial": 1}
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
