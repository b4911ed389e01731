"""What may not be published: each rule with its whole message, and a registry that is as it was before."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from keys.key_files import KeyRole
from manifests.batching import BatchPolicy
from manifests.manifest import Manifest
from manifests.names import parse_name
from manifests.parts import Capabilities, FileEntry, PluginType, Variant
from manifests.ranges import Range
from manifests.versions import Version
from tests.registry.team import FILES, Team, digest, entry_of, make_key, manifest_of, problem

LINUX, MAC = Variant(os="linux"), Variant(os="darwin")


def _problems(team: Team, token: str, *manifests: Manifest) -> list[tuple[str, str]]:
    """Submit, check that nothing changed, and return all problems."""
    before = team.state()

    answer = team.submit(token, *manifests)

    assert team.state() == before
    return [(each["type"], each["detail"]) for each in problem(answer)["problems"]]


def test_one_problem_is_told_whole(team: Team) -> None:
    before = team.state()

    answer = team.submit(team.admin, manifest_of(batch_policy=None))

    assert answer.status_code == 422
    body = problem(answer)
    (only,) = body["problems"]
    assert only["type"] == "batch-policy-missing"
    assert body["type"] == "publish-refused"
    assert body["detail"] == f"`audio-encoder` 1.0.0 cannot be published: 1 problem: {only['detail']}"
    assert only["detail"] == (
        "`audio-encoder` 1.0.0 has no batch policy, so calls that wait together are run one by one"
    )
    assert body["hint"] == "in manifest.yaml, add `batch_policy: adaptive`, or a waiver with a written reason"
    assert body["context"] == {}
    assert team.state() == before


def test_all_problems_are_told_at_once(team: Team) -> None:
    team.publish(team.admin, manifest_of())
    wasteful: dict[str, Any] = {
        "batch_policy": None,
        "device_affinity": None,
        "seedance_version": Range.parse(">=2.0.5"),
    }
    first = manifest_of(version="2.0.0", variant=LINUX, **wasteful)
    second = manifest_of(version="2.0.1", variant=LINUX, **wasteful)

    answer = team.submit(team.token("lee"), first, second)

    body = problem(answer)
    assert (answer.status_code, body["type"]) == (403, "scope")
    assert body["detail"] == "token `lee` may not change `audio-encoder`: it belongs to `admin`"
    assert [each["type"] for each in body["problems"]] == [
        "scope",
        "mix",
        "affinity-unbound",
        "range-unbounded",
        "batch-policy-missing",
        "affinity-unbound",
        "range-unbounded",
        "batch-policy-missing",
    ]


def test_several_problems_are_counted(team: Team) -> None:
    manifest = manifest_of(batch_policy=None, device_affinity=None, seedance_version=Range.parse(">=2.0"))

    answer = team.submit(team.admin, manifest)

    body = problem(answer)
    assert body["detail"] == "`audio-encoder` 1.0.0 cannot be published: 3 problems"
    assert body["hint"] == "nothing was stored; fix the problems above, then pack, sign and publish again"
    assert body["problems"] == [
        {
            "type": "affinity-unbound",
            "detail": "`audio-encoder` 1.0.0 names no device, so a host with several accelerators places it by luck; "
            "in manifest.yaml, add `device_affinity: [...]`, or a waiver with a written reason",
        },
        {
            "type": "range-unbounded",
            "detail": "`audio-encoder` 1.0.0 has no upper bound in `seedance_version: >=2.0`, so what it was never "
            "tested with may be taken; "
            'in manifest.yaml, close the range, as in `seedance_version: ">=2.0,<3"`, '
            "or a waiver with a written reason",
        },
        {
            "type": "batch-policy-missing",
            "detail": "`audio-encoder` 1.0.0 has no batch policy, so calls that wait together are run one by one; "
            "in manifest.yaml, add `batch_policy: adaptive`, or a waiver with a written reason",
        },
    ]


def test_no_remedy_for_installers_is_told_to_a_publisher(team: Team) -> None:
    manifest = manifest_of(batch_policy=None, device_affinity=None, seedance_version=Range.parse(">=2.0"))

    answer = team.submit(team.admin, manifest)

    assert "spm install" not in answer.text
    assert "spm uninstall" not in answer.text


PIN_IT = "ask an admin of this registry to pin your key: `spm-registry key add FILE.pub`"
NAME_IT = "ask an admin of this registry to add the name to your key in loader.conf"
OWN = "pack it again with the key's own publisher, or sign it with a key of that publisher"
PACK_IT = "pack and sign it for this registry"
GENERAL = "nothing was stored; fix the problems above, then pack, sign and publish again"


@pytest.mark.parametrize(
    ("changes", "reason", "hint"),
    [
        ({"name": "video-encoder"}, "key-namespace", NAME_IT),
        ({"publisher": "video-team"}, "key-namespace", OWN),
        ({"registry": "other.team"}, "mix", PACK_IT),
        ({"type": PluginType.CORE}, "wrong-class", "sign it with a key of the role core"),
    ],
)
def test_a_publisher_is_told_what_a_publisher_can_do(
    team: Team, changes: dict[str, Any], reason: str, hint: str
) -> None:
    answer = team.submit(team.admin, manifest_of(**changes), key=team.ext)

    body = problem(answer)
    assert ([each["type"] for each in body["problems"]], body["hint"]) == ([reason], hint)


def test_a_problem_without_a_remedy_of_its_own_gets_the_general_one(team: Team) -> None:
    team.publish(team.admin, manifest_of(version="1.0.0+a"))

    answer = team.submit(team.admin, manifest_of())

    body = problem(answer)
    assert ([each["type"] for each in body["problems"]], body["hint"]) == (["build-twin"], GENERAL)


def test_who_has_not_had_a_key_pinned_is_told_to_ask(team: Team) -> None:
    stranger = make_key(team.root.parent, "stranger", KeyRole.EXT)

    answer = team.submit(team.admin, manifest_of(), key=stranger)

    assert problem(answer)["hint"] == PIN_IT


def test_who_asks_for_more_than_a_key_may_have_is_told_both_ways_out(team: Team) -> None:
    conf = team.site.loader_conf
    conf.write_text(conf.read_text().replace("[[core.keys]]", "[ext.capabilities]\nnetwork = false\n\n[[core.keys]]"))

    answer = team.submit(team.admin, manifest_of(capabilities=Capabilities(network=True)))

    assert problem(answer)["hint"] == (
        "ask for less under `capabilities` in manifest.yaml, or ask an admin of this registry to allow your key more"
    )


def test_a_waived_trap_is_no_problem(team: Team) -> None:
    manifest = manifest_of(batch_policy=None, waivers=(("batch-policy-missing", "one caller only, by design"),))

    assert team.submit(team.admin, manifest).status_code == 201


def test_an_unsigned_manifest_is_refused(team: Team) -> None:
    before = team.state()
    entry = entry_of(manifest_of().to_bytes(), {})

    answer = team.ask("POST", "/v1/uploads", team.admin, json={"manifests": [entry]})

    body = problem(answer)
    assert answer.status_code == 422
    assert body["problems"] == [{"type": "unsigned", "detail": "the manifest has no signature"}]
    assert body["detail"] == "the release cannot be published: 1 problem: the manifest has no signature"
    assert body["hint"] == "sign it with `spm sign PACKED --key NAME`, then publish again"
    assert team.state() == before


def test_a_signature_is_checked_before_the_manifest_is_parsed(team: Team) -> None:
    signatures = team.ext.sign(manifest_of().to_bytes())
    entry = entry_of(b"{not a manifest", signatures)

    answer = team.ask("POST", "/v1/uploads", team.admin, json={"manifests": [entry]})

    (only,) = problem(answer)["problems"]
    assert only["type"] == "sig-invalid"


def _flip(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("share", [0, 0.2, 0.5, 0.8, 0.99])
@pytest.mark.parametrize("part", ["manifest", "signature"])
@pytest.mark.parametrize("kind", ["core", "ext"])
def test_a_flipped_bit_anywhere_is_refused(team: Team, kind: str, part: str, share: float) -> None:
    key = team.core if kind == "core" else team.ext
    manifest = manifest_of(type=PluginType(kind)).to_bytes()
    ((file_name, signature),) = key.sign(manifest).items()
    before = team.state()
    if part == "manifest":
        manifest = _flip(manifest, int(len(manifest) * share))
    else:
        signature = _flip(signature, int(len(signature) * share))

    entry = entry_of(manifest, {file_name: signature})
    answer = team.ask("POST", "/v1/uploads", team.admin, json={"manifests": [entry]})

    assert answer.status_code == 422
    (only,) = problem(answer)["problems"]
    assert only["type"] in {"sig-invalid", "sig-malformed", "header-refused", "alg-refused", "key-unknown"}
    assert team.state() == before


def test_a_key_that_is_not_pinned_is_unknown(team: Team) -> None:
    stranger = make_key(team.root.parent, "stranger", KeyRole.EXT)

    answer = team.submit(team.admin, manifest_of(), key=stranger)

    (only,) = problem(answer)["problems"]
    assert only["type"] == "key-unknown"


def test_a_key_signs_only_its_names(team: Team) -> None:
    ((reason, message),) = _problems(team, team.admin, manifest_of(name="video-encoder"))

    assert reason == "key-namespace"
    assert "it is trusted for `audio-*`, `log-mel` only" in message


def test_an_ext_signature_on_a_core_plugin_is_of_the_wrong_class(team: Team) -> None:
    answer = team.submit(team.admin, manifest_of(type=PluginType.CORE), key=team.ext)

    (only,) = problem(answer)["problems"]
    assert only == {
        "type": "wrong-class",
        "detail": "the manifest says that it is of the class core, but its signature is of the class ext",
    }


def test_a_manifest_for_another_registry_is_refused(team: Team) -> None:
    ((reason, message),) = _problems(team, team.admin, manifest_of(registry="other.team"))

    assert reason == "mix"
    assert message == "audio-encoder 1.0.0 was made for the registry `other.team`, this one is `team.local`"


def test_each_bad_manifest_of_several_is_named(team: Team) -> None:
    good, bad = manifest_of(variant=LINUX), manifest_of(variant=MAC, registry="other.team")

    ((reason, message),) = _problems(team, team.admin, good, bad)

    assert reason == "mix"
    assert message.startswith("manifest 2 of 2: audio-encoder 1.0.0 was made for the registry `other.team`")


def _other_version(manifest: Manifest) -> Manifest:
    return replace(manifest, version=Version.parse("1.0.1"))


def _other_name(manifest: Manifest) -> Manifest:
    return replace(manifest, name=parse_name("log-mel"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_other_version, "audio-encoder 1.0.0 (ext), audio-encoder 1.0.1 (ext)"),
        (_other_name, "audio-encoder 1.0.0 (ext), log-mel 1.0.0 (ext)"),
    ],
)
def test_all_manifests_are_of_one_release(team: Team, change: Callable[[Manifest], Manifest], message: str) -> None:
    found = _problems(team, team.admin, manifest_of(variant=LINUX), change(manifest_of(variant=MAC)))

    assert found == [("mix", f"all manifests of a publish must be of one release, and these are {message}")]


def test_a_variant_comes_once(team: Team) -> None:
    first = manifest_of(variant=LINUX)
    second = manifest_of({"audio_encoder.py": b"other\n"}, variant=LINUX)

    assert _problems(team, team.admin, first, second) == [
        ("variant-twin", f"2 manifests are the same variant, `{first.release}`")
    ]


def test_variants_share_what_the_index_says_once(team: Team) -> None:
    first = manifest_of(variant=LINUX)
    second = manifest_of(variant=MAC, summary="Something else", batch_policy=BatchPolicy.from_value("static"))

    found = _problems(team, team.admin, first, second)

    told = [message for reason, message in found if reason == "variants-differ"]
    assert told == [
        "`summary` must be the same in all variants of a release, since the index says it once",
        "`batch_policy` must be the same in all variants of a release, since the index says it once",
    ]


def test_variants_that_share_it_are_one_release(team: Team) -> None:
    committed = team.publish(team.admin, manifest_of(variant=LINUX), manifest_of(variant=MAC))

    assert committed.status_code == 201


def test_a_version_never_changes(team: Team) -> None:
    team.publish(team.admin, manifest_of())
    before = team.state()

    answer = team.submit(team.admin, manifest_of(summary="Something else"))

    assert answer.status_code == 409
    assert problem(answer) == {
        "type": "version-exists",
        "title": "Conflict",
        "status": 409,
        "detail": "`audio-encoder` 1.0.0 is published here with other bytes",
        "hint": "a published version never changes: publish the new bytes under a new version",
        "context": {},
    }
    assert team.state() == before


def test_a_variant_cannot_be_added_to_a_published_version(team: Team) -> None:
    team.publish(team.admin, manifest_of(variant=LINUX))

    answer = team.submit(team.admin, manifest_of(variant=LINUX), manifest_of(variant=MAC))

    assert problem(answer)["type"] == "version-exists"


@pytest.mark.parametrize(("old", "new"), [("1.0.0", "1.0.0+a"), ("1.0.0+a", "1.0.0"), ("1.0.0+a", "1.0.0+b")])
def test_two_versions_never_differ_only_in_their_build_part(team: Team, old: str, new: str) -> None:
    team.publish(team.admin, manifest_of(version=old))

    assert _problems(team, team.admin, manifest_of(version=new)) == [
        (
            "build-twin",
            f"`audio-encoder` {new} differs only in its build part from {old}, which is published here",
        )
    ]


def test_a_name_that_could_be_taken_for_another_is_refused(team: Team) -> None:
    team.publish(team.admin, manifest_of(name="audio-l0"))

    assert _problems(team, team.admin, manifest_of(name="audio-1o")) == [
        ("confusable", "`audio-1o` could be taken for `audio-l0`, which is published here")
    ]


def test_a_plugin_keeps_its_class(team: Team) -> None:
    team.publish(team.admin, manifest_of())

    assert _problems(team, team.admin, manifest_of(version="1.1.0", type=PluginType.CORE)) == [
        (
            "class-changed",
            "`audio-encoder` 1.1.0 is of the class core, and its earlier releases are of the class ext",
        )
    ]


def test_a_file_has_one_size(team: Team) -> None:
    sha256 = digest(b"one")
    table = tuple(
        FileEntry(path=path, size=size, sha256=sha256, mode="r") for path, size in [("a.bin", 3), ("b.bin", 4)]
    )

    assert _problems(team, team.admin, replace(manifest_of(), files=table)) == [
        ("size", f"`b.bin` (sha256:{sha256}) cannot have 4 bytes: it has 3")
    ]


def test_a_file_that_is_here_has_the_size_that_it_has(team: Team) -> None:
    team.publish(team.admin, manifest_of())
    sha256 = digest(FILES["weights.bin"])
    table = (FileEntry(path="w.bin", size=1, sha256=sha256, mode="r"),)

    assert _problems(team, team.admin, replace(manifest_of(version="1.1.0"), files=table)) == [
        ("size", f"`w.bin` (sha256:{sha256}) cannot have 1 bytes: it has 2048")
    ]


def test_who_published_first_owns_the_name(team: Team) -> None:
    team.publish(team.token("maria"), manifest_of())
    before = team.state()

    other = team.submit(team.token("lee"), manifest_of(version="1.1.0"))

    assert other.status_code == 403
    assert problem(other)["detail"] == "token `lee` may not change `audio-encoder`: it belongs to `maria`"
    assert "tokens" in before
    assert team.submit(team.token("maria"), manifest_of(version="1.1.0")).status_code == 201
    assert team.submit(team.admin, manifest_of(version="1.2.0")).status_code == 201


def test_a_token_publishes_only_its_names(team: Team) -> None:
    answer = team.submit(team.token("maria", names=("log-*",)), manifest_of())

    assert answer.status_code == 403
    assert problem(answer) == {
        "type": "scope",
        "title": "Forbidden",
        "status": 403,
        "detail": "token `maria` may not change `audio-encoder`: its name patterns are `log-*`",
        "hint": "ask an admin for a token with this name, or its owner to publish",
        "context": {},
    }


ENTRY = {"manifest": "", "signatures": {}}
MALFORMED: list[tuple[Any, str]] = [
    ([], "it must be an object with the one member `manifests`"),
    ({"manifests": [], "more": 1}, "it must be an object with the one member `manifests`"),
    ({"manifests": []}, "`manifests` must be a list of 1 to 64 manifests"),
    ({"manifests": [ENTRY] * 65}, "`manifests` must be a list of 1 to 64 manifests"),
    ({"manifests": [1]}, "`manifests[0]` must be an object with the members `manifest` and `signatures`"),
    (
        {"manifests": [{"manifest": "", "signatures": []}]},
        "`manifests[0].signatures` must be an object of at most 64 signature files",
    ),
    (
        {"manifests": [{"manifest": "", "signatures": {"../../x": ""}}]},
        "`manifests[0].signatures` has '../../x', which is no name of a signature file",
    ),
    ({"manifests": [{"manifest": "%", "signatures": {}}]}, "`manifests[0].manifest` is not base64"),
    ({"manifests": [{"manifest": 1, "signatures": {}}]}, "`manifests[0].manifest` is not base64"),
    (
        {"manifests": [{"manifest": "", "signatures": {"manifest.jws": "\u00e9"}}]},
        "`manifests[0].signatures.manifest.jws` is not base64",
    ),
]


@pytest.mark.parametrize(("body", "message"), MALFORMED)
def test_a_malformed_request_is_refused(team: Team, body: Any, message: str) -> None:
    before = team.state()

    answer = team.ask("POST", "/v1/uploads", team.admin, json=body)

    assert answer.status_code == 400
    assert problem(answer)["detail"] == f"the request body is refused: {message}"
    assert team.state() == before


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 4_000, b'{"manifests": ' + b"[" * 4_000])
def test_what_is_not_json_is_refused(team: Team, body: bytes) -> None:
    answer = team.ask("POST", "/v1/uploads", team.admin, data=body)

    assert answer.status_code == 400
    assert problem(answer)["detail"] == "the request body is refused: it is not JSON"


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"manifests": [' + b"[]," * 100_000 + b"0]}", b"{" * 100_000])
def test_a_body_of_very_many_parts_is_refused_unparsed(team: Team, body: bytes) -> None:
    answer = team.ask("POST", "/v1/uploads", team.admin, data=body)

    assert answer.status_code == 400
    detail = "the request body is refused: it has more parts than 64 manifests with 64 signatures each"
    assert problem(answer)["detail"] == detail


def test_as_many_parts_as_are_allowed_are_not_too_many(team: Team) -> None:
    signatures = {f"manifest.sig.{number:064x}": b"x" for number in range(64)}
    entries = [entry_of(b"{}", signatures) for _ in range(64)]

    answer = team.ask("POST", "/v1/uploads", team.admin, json={"manifests": entries})

    assert (answer.status_code, len(problem(answer)["problems"])) == (422, 64)


@pytest.mark.parametrize(
    "manifest", [b'{"\\ud800":1}', b'{"a":{"\\udfff":1}}', b'{"a":"\\ud800"}', b'{"name":"\\ud800"}']
)
def test_a_signed_lone_surrogate_is_refused_as_a_problem(team: Team, manifest: bytes) -> None:
    entry = entry_of(manifest, team.ext.sign(manifest))

    answer = team.ask("POST", "/v1/uploads", team.admin, json={"manifests": [entry]})

    assert answer.status_code == 422
    assert [each["type"] for each in problem(answer)["problems"]] == ["non-canonical"]


def test_a_manifest_that_is_no_manifest_is_refused_although_it_is_signed(team: Team) -> None:
    entry = entry_of(b"[]", team.ext.sign(b"[]"))

    answer = team.ask("POST", "/v1/uploads", team.admin, json={"manifests": [entry]})

    assert problem(answer)["problems"] == [{"type": "non-canonical", "detail": "the manifest is not a JSON object"}]


def test_a_body_beyond_the_limit_is_refused_unread(team: Team) -> None:
    answer = team.ask("POST", "/v1/uploads", team.admin, data=b64encode(bytes(6 << 20)) + b"x")

    assert answer.status_code == 413
    assert problem(answer)["detail"] == "the request body has 8388609 bytes, more than the 8388608 allowed"
