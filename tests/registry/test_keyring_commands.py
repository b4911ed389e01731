"""The keyring that root keys sign: whose plugins clients load, and what is revoked for all of them."""

import shutil
from pathlib import Path

import pytest

from keys.key_files import KeyRole
from keys.pinned_keys import RevocationReason
from keys.root_keyring import RootKeyring
from manifests.errors import UsageError
from registry.services.known_keys import the_key
from tests.registry.machines import Holder, Registry, holder
from tests.registry.team import Team, digest, manifest_of

MOMENT = "2026-06-01T00:00:00Z"
DIGEST = "ab" * 32


@pytest.fixture
def root(tmp_path: Path) -> Holder:
    return holder(tmp_path, "root")


@pytest.fixture
def registry(tmp_path: Path, bare: Path, root: Holder) -> Registry:
    registry = Registry(Path(shutil.copytree(bare, tmp_path / "registry")))
    registry.run("root", "init", root.pub, "--sign", root.key).ok()
    return registry


@pytest.fixture
def ben(tmp_path: Path) -> Holder:
    return holder(tmp_path, "ben", KeyRole.EXT)


@pytest.fixture
def core(tmp_path: Path) -> Holder:
    return holder(tmp_path, "core", KeyRole.CORE)


def _keyring(registry: Registry, folder: Path) -> RootKeyring:
    """Return the keyring as a client gets it."""
    data = registry.client(folder).target("keyring.json")
    assert data is not None
    return RootKeyring.from_bytes(data)


def test_a_publisher_is_added_for_every_client(registry: Registry, root: Holder, ben: Holder, tmp_path: Path) -> None:
    words = ["keyring", "add", ben.pub, "--names", "ben-*", "log-mel", "--expires", "2030-01-31T12:00:00Z"]

    told = registry.json(*words, "--sign", root.key)

    keyring = _keyring(registry, tmp_path / "client")
    (key,) = keyring.keyring.ext_keys
    assert (keyring.registry, keyring.serial) == ("team.local", 2)
    assert (key.keyid, key.public_key_pem) == (ben.keyid, ben.public.public_key_pem)
    assert (key.publisher, key.names, key.expires) == ("ben", ("ben-*", "log-mel"), "2030-01-31T12:00:00Z")
    assert (told["adopted"], told["root_version"], told["targets_version"], told["keyring_serial"]) == (True, 1, 2, 2)
    added = f"keyring key added: ext {ben.keyid} of `ben` for ben-* log-mel, until 2030-01-31T12:00:00Z"
    assert told["changes"] == [added]
    assert [need["document"] for need in told["needs"]] == ["targets"]
    assert (
        f"'action': 'keyring-adopt', 'subject': 'keyring 2', 'detail': 'targets 2, keyring 2, signed by {root.keyid}'"
        in (registry.state())
    )


def test_core_keys_and_their_threshold_change_in_one_draft(
    registry: Registry, root: Holder, core: Holder, tmp_path: Path
) -> None:
    more = holder(tmp_path, "more", KeyRole.CORE)
    registry.run("keyring", "add", core.pub).ok()
    registry.run("keyring", "add", more.pub).ok()

    told = registry.json("keyring", "threshold", 2, "--sign", root.key)

    keyring = _keyring(registry, tmp_path / "client")
    assert (told["adopted"], keyring.serial, keyring.keyring.core_threshold) == (True, 2, 2)
    assert {key.keyid for key in keyring.keyring.core_keys} == {core.keyid, more.keyid}
    assert told["changes"] == [
        f"keyring key added: core {core.keyid}",
        f"keyring key added: core {more.keyid}",
        "keyring core threshold: 2 (was 1)",
    ]


def test_a_key_is_taken_out(registry: Registry, root: Holder, ben: Holder, tmp_path: Path) -> None:
    registry.run("keyring", "add", ben.pub, "--names", "*", "--sign", root.key).ok()

    told = registry.json("keyring", "remove", ben.keyid, "--sign", root.key)

    assert told["changes"] == [f"keyring key removed: ext {ben.keyid} of `ben` for *"]
    assert _keyring(registry, tmp_path / "client").keyring.ext_keys == ()


@pytest.mark.parametrize(
    ("words", "reason", "since"),
    [
        (["--reason", "retired", "--since", MOMENT], RevocationReason.RETIRED, MOMENT),
        (["--reason", "compromised"], RevocationReason.COMPROMISED, None),
    ],
)
def test_a_key_is_revoked(
    registry: Registry,
    root: Holder,
    ben: Holder,
    tmp_path: Path,
    words: list[str],
    reason: RevocationReason,
    since: str | None,
) -> None:
    registry.run("keyring", "add", ben.pub, "--names", "*", "--sign", root.key).ok()

    told = registry.json("keyring", "revoke", ben.keyid, *words, "--sign", root.key)

    (revoked,) = _keyring(registry, tmp_path / "client").keyring.revoked_keys
    assert (revoked.keyid, revoked.reason, revoked.since) == (ben.keyid, reason, since)
    tail = f" since {since}" if since else ""
    assert told["changes"] == [f"key revoked: {ben.keyid} {reason.value}{tail}"]


def test_a_key_that_only_loader_conf_pins_is_revoked_too(
    registry: Registry, root: Holder, ben: Holder, tmp_path: Path
) -> None:
    registry.run("key", "add", ben.pub, "--names", "*").ok()

    registry.run("keyring", "revoke", ben.keyid, "--reason", "retired", "--sign", root.key).ok()

    (revoked,) = _keyring(registry, tmp_path / "client").keyring.revoked_keys
    assert (revoked.keyid, revoked.since is None) == (ben.keyid, False)


def test_a_manifest_is_revoked(registry: Registry, root: Holder, tmp_path: Path) -> None:
    told = registry.json("keyring", "revoke-manifest", DIGEST, "--unknown", "--sign", root.key)

    assert told["changes"] == [f"manifest revoked: {DIGEST}"]
    assert _keyring(registry, tmp_path / "client").keyring.revoked_manifests == frozenset({DIGEST})


def test_a_keyring_needs_the_threshold_of_the_root(tmp_path: Path, bare: Path, ben: Holder) -> None:
    two = [holder(tmp_path, name) for name in ("ana", "cid")]
    registry = Registry(Path(shutil.copytree(bare, tmp_path / "two")))
    signs = [word for each in two for word in ("--sign", each.key)]
    registry.run("root", "init", *(each.pub for each in two), "--threshold", 2, *signs).ok()

    drafted = registry.json("keyring", "add", ben.pub, "--names", "*", "--sign", two[0].key)
    before = registry.client(tmp_path / "client").versions()
    adopted = registry.json("root", "sign", two[1].key)

    assert (drafted["adopted"], [need["missing"] for need in drafted["needs"]]) == (False, [1])
    assert (before["targets"], adopted["targets_version"]) == (1, 2)
    assert _keyring(registry, tmp_path / "client").keyring.ext_keys[0].keyid == ben.keyid


def test_a_root_that_is_being_signed_takes_a_keyring_along(
    registry: Registry, root: Holder, ben: Holder, tmp_path: Path
) -> None:
    ana = holder(tmp_path, "ana")
    registry.run("root", "add-key", ana.pub).ok()

    told = registry.json("keyring", "add", ben.pub, "--names", "*", "--sign", root.key)

    assert (told["root_version"], told["targets_version"], told["keyring_serial"]) == (2, 2, 2)


def test_an_unchanged_keyring_keeps_its_serial(registry: Registry, root: Holder, tmp_path: Path) -> None:
    told = registry.json("root", "rotate", "--sign", root.key)

    assert (told["root_version"], told["targets_version"], told["keyring_serial"]) == (2, 2, 1)
    assert _keyring(registry, tmp_path / "client").serial == 1


def test_a_change_that_is_taken_back_leaves_the_keyring_as_it_was(
    registry: Registry, root: Holder, ben: Holder
) -> None:
    registry.run("keyring", "add", ben.pub, "--names", "*").ok()

    told = registry.json("keyring", "remove", ben.keyid, "--sign", root.key)

    assert (told["changes"], told["keyring_serial"], told["targets_version"]) == ([], 1, 2)


def test_the_keyring_is_shown(registry: Registry, root: Holder, ben: Holder, core: Holder, tmp_path: Path) -> None:
    registry.run("keyring", "add", core.pub).ok()
    registry.run("keyring", "add", ben.pub, "--names", "ben-*", "--expires", MOMENT).ok()
    registry.run("keyring", "revoke", "cd" * 32, "--reason", "compromised", "--unknown").ok()
    registry.run("keyring", "revoke", ben.keyid, "--reason", "retired", "--since", MOMENT).ok()
    registry.run("keyring", "revoke-manifest", DIGEST, "--unknown", "--sign", root.key).ok()

    said = registry.run("keyring", "show").ok()
    told = registry.json("keyring", "show")

    assert said.out.splitlines()[:3] == [
        "keyring 2 of `team.local`, core threshold 1",
        f"{core.keyid}  core  -                 every core plugin",
        f"{ben.keyid}  ext   ben               ben-*  until {MOMENT}",
    ]
    assert sorted(said.out.splitlines()[3:]) == sorted(
        [
            f"revoked {'cd' * 32} compromised",
            f"revoked {ben.keyid} retired since {MOMENT}",
            f"revoked manifest {DIGEST}",
        ]
    )
    assert told == {"keyring": _keyring(registry, tmp_path / "client").to_dict(), "draft": None}


def test_a_keyring_that_waits_is_spoken_of(registry: Registry, ben: Holder) -> None:
    registry.run("keyring", "add", ben.pub, "--names", "*").ok()

    said = registry.run("keyring", "show").ok()

    assert said.out == "keyring 1 of `team.local`, core threshold 1\n"
    where = f"--root {registry.root}`"
    assert said.err == (
        f"no keys of its own; loader.conf pins 0 more (`spm-registry key list {where})\n"
        f"A draft waits in {registry.draft}: `spm-registry root show {where} says what it changes\n"
    )


# Refusals


def test_a_root_key_signs_no_plugins(registry: Registry, root: Holder, tmp_path: Path) -> None:
    other = holder(tmp_path, "other")

    refused = registry.refuses("keyring", "add", other.pub, "--sign", root.key)

    assert refused == (
        2,
        "the root key `other` signs no plugins",
        f"`spm-registry root add-key other.pub --root {registry.root}`",
    )


def test_a_root_key_is_not_revoked_like_a_publishers(registry: Registry, root: Holder) -> None:
    refused = registry.refuses("keyring", "revoke", root.keyid, "--reason", "compromised", "--sign", root.key)

    assert refused == (
        2,
        f"the key {root.keyid} is a root key, and the keyring revokes keys that sign plugins",
        f"`spm-registry root remove-key {root.keyid} --root {registry.root}`",
    )


def test_a_compromised_key_has_no_better_days(registry: Registry, root: Holder, ben: Holder) -> None:
    words = ["keyring", "revoke", ben.keyid, "--reason", "compromised", "--since", MOMENT, "--unknown"]

    refused = registry.refuses(*words, "--sign", root.key)

    assert refused == (
        2,
        "a compromised key is revoked for all that it ever signed: its thief can write any date",
        "leave out `--since`, or give the reason `retired`",
    )


def test_what_is_so_already_is_not_drafted(registry: Registry, root: Holder, core: Holder) -> None:
    registry.run("keyring", "add", core.pub, "--sign", root.key).ok()
    registry.run("keyring", "revoke-manifest", DIGEST, "--unknown", "--sign", root.key).ok()

    again = registry.refuses("keyring", "revoke-manifest", DIGEST, "--unknown", "--sign", root.key)
    same = registry.refuses("keyring", "threshold", 1, "--sign", root.key)

    assert again == same == (2, "nothing would change: it is so already", "")


def test_a_threshold_that_the_core_keys_cannot_meet_is_refused(registry: Registry, root: Holder, core: Holder) -> None:
    registry.run("keyring", "add", core.pub, "--sign", root.key).ok()

    refused = registry.refuses("keyring", "threshold", 2, "--sign", root.key)

    message = "`core.threshold` is 2, but there is only 1 core key"
    assert refused == (
        2,
        message,
        f"see `spm-registry keyring threshold --root {registry.root}` and `keyring remove`",
    )


def test_a_key_that_is_there_twice_is_refused(registry: Registry, root: Holder, ben: Holder) -> None:
    registry.run("keyring", "add", ben.pub, "--names", "*", "--sign", root.key).ok()

    refused = registry.refuses("keyring", "add", ben.pub, "--names", "*", "--sign", root.key)

    assert refused == (2, f"the keyring has the key {ben.keyid} already", "to change its terms, remove it first")


def test_a_key_that_is_not_there_is_not_taken_out(registry: Registry, root: Holder, ben: Holder) -> None:
    refused = registry.refuses("keyring", "remove", ben.keyid, "--sign", root.key)

    message = f"the keyring has no key '{ben.keyid}'"
    assert refused == (10, message, f"`spm-registry keyring show --root {registry.root}` lists its keys")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["remove", "abc"],
            "argument KEYID: 'abc' is neither a key id, whole or from 8 of its digits on, nor a `.pub` file",
        ),
        (
            ["revoke-manifest", "AB" * 32],
            f"argument SHA256: '{'AB' * 32}' is not a SHA-256 digest of 64 lower-case hex digits",
        ),
        (
            ["revoke", DIGEST, "--reason", "retired", "--since", "yesterday"],
            "argument --since: 'yesterday' is not a UTC time such as 2026-01-31T12:00:00Z",
        ),
        (["threshold", "0"], "argument N: '0' is not a number from 1 on"),
    ],
)
def test_what_cannot_be_read_is_refused(registry: Registry, words: list[str], message: str) -> None:
    code, told, _ = registry.refuses("keyring", *words)

    assert (code, told) == (2, message)


def test_a_keyring_is_nothing_without_a_root(bare: Path, ben: Holder) -> None:
    registry = Registry(bare)

    added = registry.refuses("keyring", "add", ben.pub, "--names", "*")
    shown = registry.refuses("keyring", "show")

    assert added[:2] == (
        26,
        f"the registry in {registry.root} has no root of trust, without which no client can verify its index",
    )
    assert shown == (
        10,
        f"the registry in {registry.root} has no root yet, and so no keyring",
        f"make a key with `spm keys new --role root`, then `spm-registry root init FILE.pub --root {registry.root}`",
    )


# Keys that nobody has met, short ids, dates, the last core key


def test_a_key_that_is_nowhere_is_revoked_on_demand_alone(registry: Registry, root: Holder) -> None:
    words = ["keyring", "revoke", "cd" * 32, "--reason", "compromised", "--sign", root.key]

    refused = registry.refuses(*words)
    told = registry.json(*words, "--unknown")

    assert refused == (
        10,
        f"the key {'cd' * 32} is nowhere here: not in the keyring, not in loader.conf, on no published release",
        f"`spm-registry keyring show --root {registry.root}` lists the keys; `--unknown` revokes it all the same, "
        "for hosts whose older loader.conf pins it",
    )
    assert told["changes"] == [f"key revoked: {'cd' * 32} compromised"]


def test_a_manifest_that_was_not_published_is_revoked_on_demand_alone(registry: Registry, root: Holder) -> None:
    assert registry.refuses("keyring", "revoke-manifest", DIGEST, "--sign", root.key) == (
        10,
        f"no manifest with the digest {DIGEST} was published here",
        f"`spm info NAME --json` lists the digests, and `spm-registry keyring show --root {registry.root}` those that "
        "are revoked; `--unknown` revokes it all the same",
    )


def test_what_was_published_is_revoked_by_its_digest_or_by_the_key_that_signed_it(team: Team, tmp_path: Path) -> None:
    registry = Registry(team.root)
    assert team.publish(team.admin, manifest_of()).status_code == 201
    manifest = digest(manifest_of().to_bytes())
    registry.run("key", "remove", team.ext.public.keyid).ok()

    told = [
        registry.json("keyring", "revoke-manifest", manifest),
        registry.json("keyring", "revoke", team.ext.public.keyid[:8], "--reason", "compromised"),
    ]

    assert told[1]["changes"] == [f"key revoked: {team.ext.public.keyid} compromised", f"manifest revoked: {manifest}"]


def test_a_key_is_named_by_its_first_digits_or_its_file(registry: Registry, root: Holder, ben: Holder) -> None:
    registry.run("keyring", "add", ben.pub, "--names", "*", "--sign", root.key).ok()

    revoked = registry.json("keyring", "revoke", ben.keyid[:8], "--reason", "compromised")
    removed = registry.json("keyring", "remove", ben.pub)
    refused = registry.refuses("keyring", "revoke", "0" * 8, "--reason", "compromised")

    assert revoked["changes"] == [f"key revoked: {ben.keyid} compromised"]
    assert f"keyring key removed: ext {ben.keyid} of `ben` for *" in removed["changes"]
    where = f"--root {registry.root}`"
    assert refused == (
        10,
        "no key here has an id that begins with '00000000'",
        f"`spm-registry keyring show {where} and `spm-registry root show {where} list the keys",
    )


def test_digits_that_begin_two_ids_name_neither() -> None:
    one, other = "12345678" + "0" * 56, "12345678" + "1" * 56

    with pytest.raises(UsageError) as caught:
        the_key("12345678", [other, one])

    message = f"2 keys have ids that begin with '12345678': {one}, {other}"
    assert (caught.value.message, caught.value.hint) == (message, "write more digits")
    assert the_key("123456780", [other, one]) == one


def test_a_date_is_the_end_of_its_day_for_an_end_and_its_start_for_a_start(
    registry: Registry, root: Holder, ben: Holder
) -> None:
    added = registry.json("keyring", "add", ben.pub, "--names", "*", "--expires", "2030-12-31", "--sign", root.key)
    revoked = registry.json("keyring", "revoke", ben.keyid, "--reason", "retired", "--since", "2026-06-01")

    assert added["changes"] == [f"keyring key added: ext {ben.keyid} of `ben` for *, until 2030-12-31T23:59:59Z"]
    assert revoked["changes"] == [f"key revoked: {ben.keyid} retired since 2026-06-01T00:00:00Z"]


@pytest.mark.parametrize("words", [["remove"], ["revoke", "--reason", "retired"]], ids=lambda words: words[0])
def test_the_last_core_key_that_goes_is_warned_of(
    registry: Registry, root: Holder, core: Holder, words: list[str]
) -> None:
    registry.run("keyring", "add", core.pub, "--sign", root.key).ok()

    said = registry.run("keyring", *words, core.pub).ok()

    assert said.err.splitlines()[-1] == (
        "warning: no core key is left in force: hosts refuse every core plugin that is published from now on. "
        f"Add one: `spm-registry keyring add FILE.pub --root {registry.root}`"
    )


def test_a_core_key_that_goes_while_loader_conf_pins_another_is_no_loss(
    registry: Registry, root: Holder, core: Holder, tmp_path: Path
) -> None:
    registry.run("key", "add", holder(tmp_path, "more", KeyRole.CORE).pub).ok()
    registry.run("keyring", "add", core.pub, "--sign", root.key).ok()

    told = registry.json("keyring", "remove", core.pub)

    assert [text for text in told["warnings"] if "core key" in text] == []
