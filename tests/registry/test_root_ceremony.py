"""The root of trust: drafted, signed on machines that never meet, adopted whole or not at all, followed by clients."""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tuf.api.metadata import Metadata, Root

from keys.key_files import KeyRole, PublicKeyFile, load_private
from keys.keyring import LoaderConf
from keys.public_key import keyid_of_pem
from keys.root_keyring import RootKeyring
from manifests.parts import Capabilities
from registry.services.online_key import tidy_online_keys
from registry.services.root_ceremony import begin, found_root
from registry.services.root_changes import changes
from registry.services.root_draft import terms_of
from registry.services.root_state import look
from registry.storage.site import open_site
from tests.registry.machines import Holder, Registry, holder, run

ONE_PERSON = "one person alone can change whom every client trusts: the root threshold is 1"
TWO_OF_TWO = "with 2 of 2, one lost key is the end of this registry's trust: add a third"
FOLLOW = (
    "Clients follow at their next install or `spm trust update`; hosts that only run plugins do not ask by themselves\n"
)


@pytest.fixture
def registry(tmp_path: Path, bare: Path) -> Registry:
    return Registry(Path(shutil.copytree(bare, tmp_path / "registry")))


@pytest.fixture
def people(tmp_path: Path) -> tuple[Holder, Holder, Holder]:
    ana, ben, cid = (holder(tmp_path, name) for name in ("ana", "ben", "cid"))
    return ana, ben, cid


def _signs(*holders: Holder) -> list[object]:
    return [word for each in holders for word in ("--sign", each.key)]


def _one_of_one(registry: Registry, ana: Holder) -> None:
    registry.run("root", "init", ana.pub, *_signs(ana)).ok()


def _two_of_three(registry: Registry, people: tuple[Holder, ...]) -> None:
    pubs = [each.pub for each in people]
    registry.run("root", "init", *pubs, "--threshold", 2, *_signs(*people[:2])).ok()


def _root(registry: Registry, version: int) -> Root:
    status, data = registry.asking()(f"/v1/tuf/{version}.root.json")
    assert status == 200
    return Metadata[Root].from_bytes(data).signed


# One person


def test_one_person_founds_a_root_in_one_command(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    ana, _, _ = people

    told = registry.json("root", "init", ana.pub, *_signs(ana))

    root = _root(registry, 1)
    year = datetime.now(UTC) + timedelta(days=365)
    assert abs(root.expires - year) < timedelta(minutes=5)
    assert (root.consistent_snapshot, set(root.keys)) == (True, {ana.keyid, told["online_keyid"]})
    assert [(name, role.keyids, role.threshold) for name, role in sorted(root.roles.items())] == [
        ("root", [ana.keyid], 1),
        ("snapshot", [told["online_keyid"]], 1),
        ("targets", [ana.keyid], 1),
        ("timestamp", [told["online_keyid"]], 1),
    ]
    assert told == {
        "adopted": True,
        "draft": None,
        "dropped_signatures": [],
        "root_version": 1,
        "root_expires": f"{root.expires:%Y-%m-%dT%H:%M:%SZ}",
        "targets_version": 1,
        "targets_expires": f"{root.expires:%Y-%m-%dT%H:%M:%SZ}",
        "keyring_serial": 1,
        "threshold": 1,
        "keys": [{"keyid": ana.keyid, "name": "ana"}],
        "online_keyid": told["online_keyid"],
        "bins": 64,
        "signed_by": [ana.keyid],
        "needs": [
            {
                "document": document,
                "version": 1,
                "by_root": 1,
                "threshold": 1,
                "signed": [ana.keyid],
                "unsigned": [],
                "missing": 0,
            }
            for document in ("root", "targets")
        ],
        "changes": [
            "registry: team.local",
            f"root key added: {ana.keyid} `ana`",
            "root threshold: 1 of 1",
            f"online key: {told['online_keyid']}",
            "bins: 64",
        ],
        "warnings": [ONE_PERSON],
    }
    assert not registry.draft.exists()
    client = registry.client(tmp_path / "client")
    keyring = client.target("keyring.json")
    assert keyring is not None
    assert RootKeyring.from_bytes(keyring).serial == 1


def test_a_founded_root_is_pinned_in_loader_conf(registry: Registry, people: tuple[Holder, ...]) -> None:
    _one_of_one(registry, people[0])

    pin = LoaderConf.read(registry.loader_conf).require_root()
    _, served = registry.asking()("/v1/tuf/1.root.json")

    assert (pin.version, pin.sha256) == (1, hashlib.sha256(served).hexdigest())
    assert stat.S_IMODE(registry.loader_conf.stat().st_mode) == 0o644


def test_a_person_is_told_what_was_adopted_and_warned(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, _, _ = people

    said = registry.run("root", "init", ana.pub, *_signs(ana))

    online = _root(registry, 1).roles["timestamp"].keyids[0]
    assert (said.code, said.out) == (0, "")
    writes = f"`spm-registry loader-conf --output loader.conf --root {registry.root}`"
    assert said.err == (
        "  registry: team.local\n"
        f"  root key added: {ana.keyid} `ana`\n"
        "  root threshold: 1 of 1\n"
        f"  online key: {online}\n"
        "  bins: 64\n"
        f"Adopted root 1, targets 1 and keyring 1; signed by {ana.keyid} `ana`\n"
        f"Every client needs the new file: {writes} writes it\n"
        f"warning: {ONE_PERSON}\n"
    )


def test_an_adoption_is_in_the_audit_log_with_its_signers(registry: Registry, people: tuple[Holder, ...]) -> None:
    _two_of_three(registry, people)
    ana, ben, _ = people

    assert (
        "'action': 'root-adopt', 'subject': 'root 1', "
        f"'detail': 'targets 1, keyring 1, signed by {ana.keyid} {ben.keyid}'"
    ) in registry.state()


def test_a_root_with_more_bins_serves_its_index(registry: Registry, people: tuple[Holder, ...], tmp_path: Path) -> None:
    ana, _, _ = people

    told = registry.json("root", "init", ana.pub, "--bins", 256, *_signs(ana))

    client = registry.client(tmp_path / "client")
    assert told["bins"] == 256
    assert sum(name.startswith("bin-") for name in client.versions()) == 256


# Two of three, on machines that do not meet


def test_two_of_three_sign_on_two_machines(registry: Registry, people: tuple[Holder, ...], tmp_path: Path) -> None:
    ana, ben, cid = people
    drafted = registry.json("root", "init", ana.pub, ben.pub, cid.pub, "--threshold", 2)
    stick = registry.carry(tmp_path / "stick")

    first = run("root", "sign", ana.key, "--draft", stick, "--json").ok().document
    elsewhere = shutil.copytree(stick, tmp_path / "elsewhere")
    second = run("root", "sign", cid.key, "--draft", elsewhere, "--json").ok().document
    untouched = registry.json("root", "show")
    adopted = registry.json("root", "sign", "--draft", elsewhere)

    assert (drafted["adopted"], drafted["draft"], drafted["warnings"]) == (False, str(registry.draft), [])
    assert [need["missing"] for need in drafted["needs"]] == [2, 2]
    assert ([need["missing"] for need in first["needs"]], first["signed_by"]) == ([1, 1], [ana.keyid])
    assert ([need["missing"] for need in second["needs"]], second["adopted"]) == ([0, 0], False)
    assert (untouched["adopted"], untouched["draft"]["signed_by"]) == (None, [])
    assert (adopted["adopted"], adopted["signed_by"]) == (True, [ana.keyid, cid.keyid])
    assert registry.client(tmp_path / "client").versions()["targets"] == 1
    assert not registry.draft.exists()


def test_copies_that_were_signed_at_the_same_time_are_joined(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    registry.run("root", "init", *(each.pub for each in people), "--threshold", 2).ok()
    for each in people[1:]:
        copy = registry.carry(tmp_path / "stick" / each.public.name)
        run("root", "sign", each.key, "--draft", copy).ok()

    first = registry.json("root", "sign", "--draft", tmp_path / "stick" / "ben")
    second = registry.json("root", "sign", "--draft", tmp_path / "stick" / "cid")

    assert (first["adopted"], first["signed_by"]) == (False, [people[1].keyid])
    assert (second["adopted"], second["signed_by"]) == (True, [each.keyid for each in people[1:]])


def test_who_signs_elsewhere_is_shown_what_first(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    ana, ben, cid = people
    drafted = registry.json("root", "init", ana.pub, ben.pub, cid.pub, "--threshold", 2)
    stick = registry.carry(tmp_path / "stick")
    said = run("root", "sign", ben.key, "--draft", stick)

    day = drafted["root_expires"][:10]
    assert (said.code, said.out) == (0, "")
    head, rest = said.err.split("Once it is adopted")
    assert head == (
        "To be signed for the registry `team.local`:\n"
        f"  root 1 until {day}\n"
        "    root keys, 2 of 3 must sign: ana, ben, cid\n"
        "    registry: team.local\n"
        f"    root key added: {ana.keyid} `ana`\n"
        f"    root key added: {ben.keyid} `ben`\n"
        f"    root key added: {cid.keyid} `cid`\n"
        "    root threshold: 2 of 3\n"
        f"    online key: {drafted['online_keyid']}\n"
        "    bins: 64\n"
        f"  targets 1 until {day}\n"
        "  keyring serial 1\n"
    )
    assert rest.endswith(
        "Signed by ben; 1 of 2\n"
        "SIGNER  KEYID             ROOT 1   TARGETS 1\n"
        f"ana     {ana.keyid[:16]}  missing  missing\n"
        f"ben     {ben.keyid[:16]}  signed   signed\n"
        f"cid     {cid.keyid[:16]}  missing  missing\n"
        "1 more is needed: ana or cid\n"
        f"Next: `spm-registry root sign ana.key --draft {stick}`\n"
    )


def test_who_signs_again_is_told_that_it_was_signed(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    ana, ben, cid = people
    registry.run("root", "init", ana.pub, ben.pub, cid.pub, "--threshold", 2, *_signs(ana)).ok()

    said = registry.run("root", "sign", ana.key)

    assert said.err.splitlines()[-8:-6] == ["ana had signed already", "SIGNER  KEYID             ROOT 1   TARGETS 1"]
    assert said.err.splitlines()[-2:] == [
        f"Next: `spm-registry root sign ben.key --root {registry.root}`",
        f"Or elsewhere, on a copy of {registry.draft}: `spm-registry root sign ben.key --draft COPY`",
    ]


def test_what_a_later_draft_changes_is_shown_with_what_was(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, ben, _ = people
    _one_of_one(registry, ana)
    was = _root(registry, 1).roles["timestamp"].keyids[0]
    registry.run("root", "add-key", ben.pub).ok()
    drafted = registry.json("root", "rotate", "--online")

    said = registry.run("root", "sign", ana.key)

    day = drafted["root_expires"][:10]
    assert said.err.startswith(
        "To be signed for the registry `team.local`:\n"
        f"  root 2 until {day} (was until {day})\n"
        "    root keys, 1 of 2 must sign: ana, ben\n"
        f"    root key added: {ben.keyid} `ben`\n"
        "    root threshold: 1 of 2 (was 1 of 1)\n"
        f"    online key: {drafted['online_keyid']} (was {was})\n"
        f"  targets 2 until {day} (was until {day})\n"
        "  keyring serial 1 (unchanged)\n"
        f"Adopted root 2, targets 2 and keyring 1; signed by {ana.keyid} `ana`\n"
        "The old online key was removed from online.key\n"
        f"{FOLLOW}"
    )
    assert (registry.root / "online.key").read_bytes().count(b"BEGIN PRIVATE KEY") == 1


def test_an_old_online_key_that_a_crash_left_is_removed_later(registry: Registry, people: tuple[Holder, ...]) -> None:
    _one_of_one(registry, people[0])
    file = registry.root / "online.key"
    old = file.read_bytes()
    registry.run("root", "rotate", "--online", *_signs(people[0])).ok()
    file.write_bytes(old + file.read_bytes())
    site = open_site(registry.root)

    tidy_online_keys(site)

    site.database.close()
    assert file.read_bytes().count(b"BEGIN PRIVATE KEY") == 1
    assert old not in file.read_bytes()


def test_an_online_key_that_a_draft_names_stays(registry: Registry, people: tuple[Holder, ...]) -> None:
    _one_of_one(registry, people[0])
    registry.run("root", "rotate", "--online").ok()
    site = open_site(registry.root)

    tidy_online_keys(site)

    site.database.close()
    assert (registry.root / "online.key").read_bytes().count(b"BEGIN PRIVATE KEY") == 2


def test_where_every_key_is_needed_it_is_warned_of(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, ben, _ = people

    told = registry.json("root", "init", ana.pub, ben.pub, "--threshold", 2)

    assert told["warnings"] == [TWO_OF_TWO]


def test_the_public_half_of_a_key_signs_nothing(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, _, _ = people
    registry.run("root", "init", ana.pub).ok()

    refused = registry.refuses("root", "sign", ana.pub)

    assert refused == (2, f"{ana.pub}: that is the public half of the key", f"give the private one: {ana.key}")


def test_a_root_key_is_named_by_its_first_digits_or_its_file(registry: Registry, people: tuple[Holder, ...]) -> None:
    _two_of_three(registry, people)

    first = registry.json("root", "remove-key", people[0].keyid[:8])
    registry.run("root", "discard").ok()
    second = registry.json("root", "remove-key", people[0].pub)

    assert first["changes"] == second["changes"]
    assert first["changes"][0] == f"root key removed: {people[0].keyid} `ana`"


@pytest.mark.parametrize("command", ["loader-conf", "serve"])
def test_without_a_root_the_draft_that_waits_is_spoken_of(
    registry: Registry, people: tuple[Holder, ...], command: str
) -> None:
    pubs = [each.pub for each in people]
    registry.run("root", "init", *pubs, "--threshold", 2).ok()
    refused = [registry.refuses(command)]
    registry.run("root", "sign", people[0].key).ok()
    refused.append(registry.refuses(command))

    message = f"the registry in {registry.root} has no root of trust, without which no client can verify its index"
    show = f"`spm-registry root show --root {registry.root}`"
    assert refused == [
        (26, message, f"a draft of root 1 waits for 2 more signatures: {show}"),
        (26, message, f"a draft of root 1 waits for 1 more signature: {show}"),
    ]


def test_a_complete_draft_that_was_not_adopted_is_adopted_without_a_key(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    registry.run("root", "init", *(each.pub for each in people), "--threshold", 2).ok()
    stick = registry.carry(tmp_path / "stick")
    run("root", "sign", people[0].key, people[2].key, "--draft", stick).ok()
    shutil.copytree(stick, registry.draft, dirs_exist_ok=True)

    told = registry.json("root", "sign")

    assert (told["adopted"], registry.draft.exists()) == (True, False)


def test_a_draft_that_was_adopted_is_not_a_draft_any_more(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    registry.run("root", "init", people[0].pub).ok()
    stick = registry.carry(tmp_path / "stick")
    registry.run("root", "sign", people[0].key).ok()
    shutil.copytree(stick, registry.draft)  # As after a crash between the commit and the removal.

    shown = registry.json("root", "show")
    refused = registry.refuses("root", "sign", people[0].key)
    rotated = registry.json("root", "rotate", *_signs(people[0]))

    assert shown["draft"] is None
    assert refused == (
        10,
        f"there is no draft in {registry.draft}",
        f"`spm-registry root rotate --root {registry.root}` begins one; "
        f"where there is no root yet, `spm-registry root init FILE.pub --root {registry.root}`",
    )
    assert (rotated["adopted"], rotated["root_version"], registry.draft.exists()) == (True, 2, False)


def test_what_lacks_signatures_is_not_adopted(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, ben, cid = people
    registry.run("root", "init", *(each.pub for each in people), "--threshold", 2).ok()
    registry.run("root", "sign", ben.key).ok()

    refused = registry.refuses("root", "sign")

    lacks = f"1 more must come from `ana` {ana.keyid} or `cid` {cid.keyid}"
    assert refused == (
        21,
        f"the draft cannot be adopted: root 1 has 1 of the 2 signatures that root 1 asks for; {lacks}; "
        f"targets 1 has 1 of the 2 signatures that root 1 asks for; {lacks}",
        f"`spm-registry root sign ana.key --root {registry.root}`",
    )


def test_one_key_that_signs_twice_counts_once(registry: Registry, people: tuple[Holder, ...]) -> None:
    registry.run("root", "init", *(each.pub for each in people), "--threshold", 2).ok()

    told = registry.json("root", "sign", people[0].key, people[0].key)

    assert [need["missing"] for need in told["needs"]] == [1, 1]


def test_of_two_who_adopt_at_once_one_does(registry: Registry, people: tuple[Holder, ...], tmp_path: Path) -> None:
    registry.run("root", "init", people[0].pub).ok()
    stick = registry.carry(tmp_path / "stick")
    run("root", "sign", people[0].key, "--draft", stick).ok()
    shutil.copytree(stick, registry.draft, dirs_exist_ok=True)
    words = [sys.executable, "-m", "registry.cli", "root", "sign", "--root", str(registry.root), "--json"]

    def start(_: int) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(words, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(start, range(2)))

    assert sorted(each.returncode for each in done) == [0, 10]
    assert registry.state().count("'action': 'root-adopt'") == 1


# Later roots


def test_a_client_follows_every_root_from_the_one_it_pins(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    ana, ben, cid = people
    _one_of_one(registry, ana)
    registry.run("root", "add-key", ben.pub).ok()
    registry.run("root", "rotate", "--threshold", 2, *_signs(ana, ben)).ok()
    registry.run("root", "add-key", cid.pub).ok()
    registry.run("root", "remove-key", ana.keyid, *_signs(ana, ben, cid)).ok()

    client = registry.client(tmp_path / "client", root_version=1)

    root = client.updater._trusted_set.root
    assert (root.version, root.roles["root"].keyids, root.roles["root"].threshold) == (3, [ben.keyid, cid.keyid], 2)
    assert client.versions()["targets"] == 3
    assert [_root(registry, version).version for version in (1, 2, 3)] == [1, 2, 3]
    assert LoaderConf.read(registry.loader_conf).require_root().version == 3


def test_a_higher_threshold_needs_the_keys_that_it_asks_for(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, ben, _ = people
    _one_of_one(registry, ana)
    registry.run("root", "add-key", ben.pub, *_signs(ana)).ok()

    drafted = registry.json("root", "rotate", "--threshold", 2, *_signs(ana))
    adopted = registry.json("root", "sign", ben.key)

    needs = [(need["document"], need["by_root"], need["threshold"], need["missing"]) for need in drafted["needs"]]
    assert needs == [("root", 2, 1, 0), ("root", 3, 2, 1), ("targets", 3, 2, 1)]
    assert (drafted["adopted"], adopted["adopted"], adopted["root_version"]) == (False, True, 3)


def test_a_lower_threshold_needs_as_many_as_before(registry: Registry, people: tuple[Holder, ...]) -> None:
    _two_of_three(registry, people)

    drafted = registry.json("root", "rotate", "--threshold", 1, *_signs(people[0]))

    needs = [(need["document"], need["by_root"], need["threshold"], need["missing"]) for need in drafted["needs"]]
    assert needs == [("root", 1, 2, 1), ("root", 2, 1, 0), ("targets", 2, 1, 0)]
    assert (drafted["adopted"], drafted["warnings"]) == (False, [ONE_PERSON])


def test_a_lost_key_is_replaced_by_the_others(registry: Registry, people: tuple[Holder, ...], tmp_path: Path) -> None:
    _, ben, cid = people
    _two_of_three(registry, people)
    dora = holder(tmp_path, "dora")

    registry.run("root", "add-key", dora.pub).ok()
    told = registry.json("root", "remove-key", people[0].keyid, *_signs(ben, cid))

    assert (told["adopted"], told["root_version"]) == (True, 2)
    assert [key["name"] for key in told["keys"]] == ["ben", "cid", "dora"]


def test_a_key_that_is_going_cannot_sign_what_comes_after_it(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, ben, _ = people
    _one_of_one(registry, ana)
    registry.run("root", "add-key", ben.pub, *_signs(ana)).ok()

    told = registry.json("root", "remove-key", ana.keyid, *_signs(ana))

    needs = [(need["document"], need["by_root"], need["missing"]) for need in told["needs"]]
    assert needs == [("root", 2, 0), ("root", 3, 1), ("targets", 3, 1)]


@pytest.mark.parametrize(
    ("count", "threshold", "left", "hint"),
    [
        (3, 3, "2 root keys", "`spm-registry root rotate --threshold 2 --root {root}` first, or add another key first"),
        (2, 2, "1 root key", "`spm-registry root rotate --threshold 1 --root {root}` first, or add another key first"),
        (1, 1, "0 root keys", "add another key first: a registry has at least one"),
    ],
)
def test_a_key_that_the_threshold_needs_stays(
    registry: Registry, people: tuple[Holder, ...], count: int, threshold: int, left: str, hint: str
) -> None:
    pubs, signers = [each.pub for each in people[:count]], people[:count]
    registry.run("root", "init", *pubs, "--threshold", threshold, *_signs(*signers)).ok()

    refused = registry.refuses("root", "remove-key", people[0].keyid, *_signs(*signers))

    keyid = people[0].keyid
    message = f"without the key {keyid} there would be {left}, too few for the threshold of {threshold}"
    assert refused == (2, message, hint.format(root=registry.root))


def test_the_way_out_that_is_named_works(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, ben, _ = people
    registry.run("root", "init", ana.pub, ben.pub, "--threshold", 2, *_signs(ana, ben)).ok()

    registry.run("root", "rotate", "--threshold", 1).ok()
    told = registry.json("root", "remove-key", ana.keyid, *_signs(ana, ben))

    assert (told["adopted"], told["root_version"], told["threshold"]) == (True, 2, 1)


def test_a_new_online_key_signs_everything_anew(registry: Registry, people: tuple[Holder, ...], tmp_path: Path) -> None:
    _one_of_one(registry, people[0])
    before = registry.client(tmp_path / "client").versions()
    old = _root(registry, 1).roles["timestamp"].keyids

    told = registry.json("root", "rotate", "--online", *_signs(people[0]))

    after = registry.client(tmp_path / "client").versions()
    assert told["changes"] == [f"online key: {told['online_keyid']} (was {old[0]})"]
    assert _root(registry, 2).roles["timestamp"].keyids == [told["online_keyid"]] != old
    assert all(after[role] == version + 1 for role, version in before.items() if role != "timestamp")
    assert stat.S_IMODE((registry.root / "online.key").stat().st_mode) == 0o600


def test_a_draft_with_a_new_online_key_changes_nothing_until_it_is_adopted(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    _one_of_one(registry, people[0])
    before = registry.client(tmp_path / "client").versions()

    registry.run("root", "rotate", "--online").ok()

    assert registry.client(tmp_path / "client").versions() == before
    again = registry.json("root", "rotate", "--online", *_signs(people[0]))
    assert again["adopted"] is True
    assert registry.client(tmp_path / "client").versions()["targets"] == 2


# Drafts


def test_a_change_of_a_draft_drops_its_signatures_and_says_so(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, ben, cid = people
    registry.run("root", "init", ana.pub, ben.pub, "--threshold", 2, *_signs(ben)).ok()

    said = registry.run("root", "add-key", cid.pub)

    assert said.err.splitlines()[0] == (
        f"The draft has changed, so that these signatures on it were dropped: {ben.keyid} `ben`"
    )
    shown = registry.json("root", "show")["draft"]
    assert (shown["signed_by"], shown["root_version"]) == ([], 1)
    assert [key["name"] for key in shown["keys"]] == ["ana", "ben", "cid"]


def test_a_discarded_draft_leaves_what_is_adopted(registry: Registry, people: tuple[Holder, ...]) -> None:
    _one_of_one(registry, people[0])
    before = registry.state()
    registry.run("root", "rotate").ok()

    said = registry.run("root", "discard")

    assert (said.code, said.err) == (0, f"Dropped the draft in {registry.draft}; what is adopted stays as it is\n")
    assert registry.state() == before
    assert registry.refuses("root", "discard")[0] == 10


def test_what_somebody_keeps_beside_a_draft_stays(registry: Registry, people: tuple[Holder, ...]) -> None:
    registry.run("root", "init", people[0].pub).ok()
    (registry.draft / "note.txt").write_text("mine")

    registry.run("root", "sign", people[0].key).ok()

    assert [path.name for path in registry.draft.iterdir()] == ["note.txt"]


def test_a_draft_that_others_overtook_is_refused(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    _one_of_one(registry, people[0])
    registry.run("root", "rotate").ok()
    stick = registry.carry(tmp_path / "stick")
    registry.run("root", "add-key", people[1].pub, *_signs(people[0])).ok()
    shutil.copytree(stick, registry.draft)

    refused = [
        registry.refuses("root", "sign", people[0].key),
        registry.refuses("root", "rotate", *_signs(people[0])),
    ]

    assert refused == 2 * [
        (
            26,
            "the draft does not fit together, or does not follow what is adopted now",
            f"drop it with `spm-registry root discard --root {registry.root}` and begin again",
        )
    ]
    registry.run("root", "discard").ok()
    assert registry.json("root", "rotate", *_signs(people[0]))["root_version"] == 3


def _set(*path: str, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(signed: dict[str, Any]) -> None:
        for name in path[:-1]:
            signed = signed[name]
        signed[path[-1]] = to

    return change


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("root.json", _set("version", to=3)),
        ("root.json", _set("version", to=1)),
        ("root.json", _set("consistent_snapshot", to=False)),
        ("root.json", _set("roles", "targets", "threshold", to=2)),
        ("root.json", _set("roles", "snapshot", "threshold", to=2)),
        ("root.json", _set("roles", "extra", to={"keyids": [], "threshold": 1})),
        ("root.json", _set("more", to=True)),
        ("root.json", _set("roles", "root", "threshold", to=True)),
        ("root.json", _set("more", to=1.5)),
        ("root.json", _set("more", to="\ud800")),
        ("targets.json", _set("version", to=9)),
        ("targets.json", _set("targets", "index/mine.json", to={"length": 1, "hashes": {"sha256": "0" * 64}})),
        ("targets.json", _set("delegations", "succinct_roles", "bit_length", to=7)),
        ("targets.json", _set("delegations", "succinct_roles", "threshold", to=2)),
        ("targets.json", _set("targets", to={})),
    ],
)
def test_a_draft_that_says_more_than_a_ceremony_decides_is_neither_signed_nor_adopted(
    registry: Registry,
    people: tuple[Holder, ...],
    tmp_path: Path,
    file: str,
    change: Callable[[dict[str, Any]], None],
) -> None:
    ana, ben, _ = people
    registry.run("root", "init", ana.pub, ben.pub, *_signs(ana)).ok()
    registry.run("root", "rotate").ok()
    document = json.loads((registry.draft / file).read_text())
    change(document["signed"])
    (registry.draft / file).write_text(json.dumps(document))
    stick = registry.carry(tmp_path / "stick")

    here = registry.refuses("root", "sign", ana.key)
    elsewhere = run("root", "sign", ana.key, "--draft", stick, "--json")

    assert here[0] == elsewhere.code == 26
    assert here[1] == elsewhere.document["error"]["message"]
    assert json.loads((stick / file).read_text()) == document


@pytest.mark.parametrize("file", ["root.json", "targets.json", "keyring.json"])
@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"signed": {}, "signatures": []}'])
def test_a_damaged_draft_is_refused_and_can_be_discarded(
    registry: Registry, people: tuple[Holder, ...], file: str, data: bytes
) -> None:
    _one_of_one(registry, people[0])
    registry.run("root", "rotate").ok()
    (registry.draft / file).write_bytes(data)

    refused = registry.refuses("root", "sign", people[0].key)

    assert refused[0] in {25, 26}
    registry.run("root", "discard").ok()
    registry.run("root", "rotate", *_signs(people[0])).ok()


def test_a_signature_that_is_none_counts_for_nothing_and_is_not_served(
    registry: Registry, people: tuple[Holder, ...]
) -> None:
    ana, ben, _ = people
    registry.run("root", "init", ana.pub, ben.pub).ok()
    for file in ("root.json", "targets.json"):
        document = json.loads((registry.draft / file).read_text())
        document["signatures"] = [{"keyid": ana.keyid, "sig": "00"}, {"keyid": "ab", "sig": "zz"}]
        (registry.draft / file).write_text(json.dumps(document))

    refused = registry.refuses("root", "sign")
    told = registry.json("root", "sign", ben.key)

    _, served = registry.asking()("/v1/tuf/1.root.json")
    assert refused[0] == 21
    assert told["signed_by"] == [ben.keyid]
    assert [each["keyid"] for each in json.loads(served)["signatures"]] == [ben.keyid]


def test_a_copy_of_another_draft_gives_no_signatures(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    ana, ben, _ = people
    registry.run("root", "init", ana.pub, "--threshold", 1).ok()
    stick = registry.carry(tmp_path / "stick")
    run("root", "sign", ana.key, "--draft", stick).ok()
    registry.run("root", "add-key", ben.pub).ok()

    refused = registry.refuses("root", "sign", "--draft", stick)

    assert refused == (
        24,
        f"the draft in {stick} is not a copy of the one in {registry.draft}",
        "copy that one, and have it signed again",
    )


def test_a_draft_that_lay_for_more_than_its_life_is_not_adopted(registry: Registry, people: tuple[Holder, ...]) -> None:
    site = open_site(registry.root)
    begin(site, [people[0].public], 1, 64, [], 1_600_000_000)
    site.database.close()

    refused = registry.refuses("root", "sign", people[0].key)

    assert refused[0] == 23
    assert refused[1].startswith("the draft would end at 2021-09-13T12:26:40Z, and it is ")
    assert refused[2] == f"drop it with `spm-registry root discard --root {registry.root}` and begin again"


def test_a_name_that_would_draw_on_the_terminal_is_refused(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    ana, _, _ = people
    registry.run("root", "init", ana.pub).ok()
    document = json.loads((registry.draft / "root.json").read_text())
    document["signed"]["keys"][ana.keyid]["x-spm-name"] = "\x1b[2Jben"
    (registry.draft / "root.json").write_text(json.dumps(document))

    refused = registry.refuses("root", "show")

    assert refused == (26, f"the root gives the key {ana.keyid} a name that is none", "")


def test_a_loader_conf_that_could_not_pin_the_root_keeps_it_from_being_adopted(
    registry: Registry, people: tuple[Holder, ...]
) -> None:
    text = registry.loader_conf.read_text()
    registry.loader_conf.write_text('root = {version = 1, sha256 = "' + "0" * 64 + '"}\n' + text)

    refused = registry.refuses("root", "init", people[0].pub, *_signs(people[0]))

    message = f"the lines of the root cannot be told apart in {registry.loader_conf}; it was not changed"
    assert refused[:2] == (26, message)


def test_a_lost_online_key_is_replaced(registry: Registry, people: tuple[Holder, ...], tmp_path: Path) -> None:
    _one_of_one(registry, people[0])
    other = holder(tmp_path, "other")
    (registry.root / "online.key").write_bytes(other.key.read_bytes())
    lost = registry.refuses("root", "rotate", *_signs(people[0]))

    told = registry.json("root", "rotate", "--online", *_signs(people[0]))

    assert lost[0] == 26
    assert told["adopted"] is True
    assert registry.client(tmp_path / "client").versions()["targets"] == 2


# Keys


def test_a_passphrase_is_read_for_each_encrypted_key(registry: Registry, tmp_path: Path) -> None:
    ana, ben = holder(tmp_path, "ana", passphrase=b"first"), holder(tmp_path, "ben", passphrase=b"second")
    plain = holder(tmp_path, "plain")
    secrets = tmp_path / "secrets"
    secrets.write_bytes(b"first\nsecond\n")
    signs = _signs(ana, plain, ben)

    with secrets.open("rb") as file:
        told = registry.json(
            "root", "init", ana.pub, ben.pub, plain.pub, "--threshold", 3, *signs, "--passphrase-fd", file.fileno()
        )

    assert (told["adopted"], set(told["signed_by"])) == (True, {ana.keyid, ben.keyid, plain.keyid})


def test_a_wrong_passphrase_changes_nothing(registry: Registry, tmp_path: Path) -> None:
    ana = holder(tmp_path, "ana", passphrase=b"right")
    registry.run("root", "init", ana.pub).ok()
    secrets = tmp_path / "secrets"
    secrets.write_bytes(b"wrong\n")

    with secrets.open("rb") as file:
        signed = registry.refuses("root", "sign", ana.key, "--passphrase-fd", file.fileno())
        file.seek(0)
        changed = registry.refuses("root", "rotate", *_signs(ana), "--passphrase-fd", os.dup(file.fileno()))

    assert signed == changed == (2, f"{ana.key} cannot be used: the passphrase does not open it", "")


def test_without_a_terminal_a_passphrase_needs_a_descriptor(registry: Registry, tmp_path: Path) -> None:
    ana = holder(tmp_path, "ana", passphrase=b"right")

    refused = registry.refuses("root", "init", ana.pub, *_signs(ana))

    message = "a passphrase is needed and there is no terminal to ask on"
    assert refused == (2, message, "use `--passphrase-fd N`")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o606])
def test_a_private_key_that_others_may_read_signs_nothing(
    registry: Registry, people: tuple[Holder, ...], mode: int
) -> None:
    ana, _, _ = people
    ana.key.chmod(mode)

    refused = registry.refuses("root", "init", ana.pub, *_signs(ana))

    assert refused == (
        26,
        f"{ana.key} has the mode {mode:04o}: others than its owner may use this private key",
        f"`chmod 600 {ana.key}`; if others had access, make a new key",
    )


@pytest.mark.parametrize("role", [KeyRole.CORE, KeyRole.EXT])
def test_a_key_that_signs_plugins_is_no_root_key(registry: Registry, tmp_path: Path, role: KeyRole) -> None:
    wrong = holder(tmp_path, "wrong", role)

    refused = registry.refuses("root", "init", wrong.pub)

    assert refused == (
        21,
        f"the key `wrong` is of the role {role.value}, and only a key of the role root signs the root",
        "make one with `spm keys new --role root`",
    )


def _as_root(pem: str, path: Path) -> Path:
    """Write a `.pub` file that calls any key a root key."""
    keyid = keyid_of_pem(pem.encode())
    posed = PublicKeyFile(name="posed", role=KeyRole.ROOT, publisher="posed", keyid=keyid, public_key_pem=pem.encode())
    path.write_bytes(posed.to_bytes())
    return path


def test_the_online_key_is_no_root_key(registry: Registry, people: tuple[Holder, ...], tmp_path: Path) -> None:
    _one_of_one(registry, people[0])
    root = _root(registry, 1)
    keyid = root.roles["timestamp"].keyids[0]
    posed = _as_root(root.keys[keyid].keyval["public"], tmp_path / "posed.pub")

    refused = registry.refuses("root", "add-key", posed, *_signs(people[0]))

    assert refused == (
        21,
        f"the key {keyid} cannot sign the index: it is the online key, which the registry's host can use",
        "make a key for each purpose with `spm keys new`",
    )


def test_a_key_of_loader_conf_is_no_root_key(registry: Registry, people: tuple[Holder, ...], tmp_path: Path) -> None:
    core = holder(tmp_path, "core", KeyRole.CORE)
    registry.run("key", "add", core.pub).ok()
    posed = _as_root(core.public.public_key_pem.decode(), tmp_path / "posed.pub")

    refused = registry.refuses("root", "init", people[0].pub, posed)

    assert refused == (
        21,
        f"the key {core.keyid} cannot sign the index: it is a key of loader.conf, which signs plugins",
        "make a key for each purpose with `spm keys new`",
    )


def test_a_private_key_is_not_taken_for_a_public_one(registry: Registry, people: tuple[Holder, ...]) -> None:
    refused = registry.refuses("root", "init", people[0].key)

    assert refused == (2, f"{people[0].key}: this is a private key: keep it, and add `{people[0].pub}`", "")


def test_the_key_of_a_stranger_signs_nothing(registry: Registry, people: tuple[Holder, ...], tmp_path: Path) -> None:
    ana, ben, _ = people
    registry.run("root", "init", ana.pub).ok()
    stick = registry.carry(tmp_path / "stick")

    refused = registry.refuses("root", "sign", ben.key)
    elsewhere = run("root", "sign", ben.key, "--draft", stick, "--json").document["error"]

    message = f"the key {ben.keyid} signs nothing here: it is a root key neither before nor after this change"
    assert refused == (21, message, f"`spm-registry root show --root {registry.root}` lists the keys that sign")
    assert elsewhere["message"] == message


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            ["--threshold", "3"],
            "a threshold of 3 cannot be met by 2 root keys",
            "choose a threshold from 1 to 2, or add keys first",
        ),
        (
            ["--bins", "6"],
            "6 is not a number of bins: a power of two from 2 to 16384",
            "leave it out for 64, enough for some 10,000 plugins",
        ),
        (
            ["--bins", "32768"],
            "32768 is not a number of bins: a power of two from 2 to 16384",
            "leave it out for 64, enough for some 10,000 plugins",
        ),
        (
            ["--threshold", "0"],
            "argument --threshold: '0' is not a number from 1 on",
            "`spm-registry root init --help` shows how it is used",
        ),
    ],
)
def test_a_first_root_that_cannot_be_is_refused(
    registry: Registry, people: tuple[Holder, ...], words: list[str], message: str, hint: str
) -> None:
    assert registry.refuses("root", "init", people[0].pub, people[1].pub, *words) == (2, message, hint)


def test_the_same_key_twice_is_refused(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, _, _ = people

    first = registry.refuses("root", "init", ana.pub, ana.pub)
    _one_of_one(registry, ana)
    again = registry.refuses("root", "add-key", ana.pub, *_signs(ana))

    assert first == again == (2, f"the key {ana.keyid} (`ana`) is a root key already", "")


def test_a_threshold_that_nobody_could_meet_is_refused_later_too(
    registry: Registry, people: tuple[Holder, ...]
) -> None:
    _one_of_one(registry, people[0])

    refused = registry.refuses("root", "rotate", "--threshold", 2, *_signs(people[0]))

    assert refused == (
        2,
        "a threshold of 2 cannot be met by 1 root key",
        "choose a threshold from 1 to 1, or add keys first",
    )


def test_a_key_that_is_not_there_cannot_be_removed(registry: Registry, people: tuple[Holder, ...]) -> None:
    _one_of_one(registry, people[0])

    refused = registry.refuses("root", "remove-key", "0" * 64, *_signs(people[0]))

    assert refused == (
        10,
        f"there is no root key '{'0' * 64}'",
        f"`spm-registry root show --root {registry.root}` lists them",
    )


# What is there and what is not


def test_a_registry_has_one_first_root(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, ben, _ = people
    registry.run("root", "init", ana.pub).ok()
    drafted = registry.refuses("root", "init", ben.pub, *_signs(ben))
    registry.run("root", "sign", ana.key).ok()

    adopted = registry.refuses("root", "init", ben.pub, *_signs(ben))

    assert drafted == (
        2,
        f"a draft of the first root waits in {registry.draft}",
        f"`spm-registry root sign ana.key --root {registry.root}` signs it, "
        f"`spm-registry root discard --root {registry.root}` drops it",
    )
    assert adopted == (
        2,
        "this registry has a root already, version 1",
        f"`spm-registry root rotate --root {registry.root}` renews it; "
        "`root add-key` and `root remove-key` change its keys",
    )


@pytest.mark.parametrize(
    "words", [["rotate"], ["add-key", "{pub}"], ["remove-key", "0" * 64]], ids=lambda words: words[0]
)
def test_nothing_is_changed_where_there_is_no_root(
    registry: Registry, people: tuple[Holder, ...], words: list[str]
) -> None:
    refused = registry.refuses("root", *(word.format(pub=people[0].pub) for word in words))

    assert refused == (
        26,
        f"the registry in {registry.root} has no root of trust, without which no client can verify its index",
        f"make one: `spm-registry root init FILE.pub --root {registry.root}`",
    )


def test_show_says_where_there_is_nothing(registry: Registry) -> None:
    assert registry.refuses("root", "show") == (
        10,
        f"the registry in {registry.root} has no root yet",
        f"make a key with `spm keys new --role root`, then `spm-registry root init FILE.pub --root {registry.root}`",
    )


def test_show_tells_a_person_the_root_and_what_a_draft_lacks(registry: Registry, people: tuple[Holder, ...]) -> None:
    ana, ben, _ = people
    _one_of_one(registry, ana)
    registry.run("root", "add-key", ben.pub).ok()

    said = registry.run("root", "show").ok()

    root = _root(registry, 1)
    ends = f"{root.expires:%Y-%m-%dT%H:%M:%SZ}"
    assert said.out == (
        f"root 1, until {ends}, threshold 1\n"
        f"  sha256 {LoaderConf.read(registry.loader_conf).require_root().sha256}\n"
        f"  {ana.keyid}  ana\n"
        f"targets 1, until {ends}, keyring 1\n"
        f"online key {root.roles['timestamp'].keyids[0]} signs 64 bins, snapshot and timestamp\n"
    )
    day = ends[:10]
    assert said.err == (
        f"warning: {ONE_PERSON}\n"
        f"Draft in {registry.draft}, to be signed for the registry `team.local`:\n"
        f"  root 2 until {day} (was until {day})\n"
        "    root keys, 1 of 2 must sign: ana, ben\n"
        f"    root key added: {ben.keyid} `ben`\n"
        "    root threshold: 1 of 2 (was 1 of 1)\n"
        f"  targets 2 until {day} (was until {day})\n"
        "  keyring serial 1 (unchanged)\n"
        "SIGNER  KEYID             OLD ROOT KEYS  NEW ROOT KEYS  TARGETS 2\n"
        f"ana     {ana.keyid[:16]}  missing        missing        missing\n"
        f"ben     {ben.keyid[:16]}  -              missing        missing\n"
        "1 more of the old root keys is needed: ana\n"
        "1 more of the new root keys is needed: ana or ben\n"
    )


def test_sign_needs_a_place(people: tuple[Holder, ...]) -> None:
    said = run("root", "sign", people[0].key)

    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "error[usage]: neither a registry nor a copy of its draft is given\n"
        "  hint: `--root DIR`, or `--draft DIR` where there is none\n"
    )


def test_a_folder_without_a_draft_is_refused(people: tuple[Holder, ...], tmp_path: Path) -> None:
    said = run("root", "sign", people[0].key, "--draft", tmp_path, "--json")

    assert (said.code, said.document["error"]["message"]) == (10, f"no draft at {tmp_path}")


def test_a_root_is_founded_for_tests_of_all_rooms_in_one_call(registry: Registry, people: tuple[Holder, ...]) -> None:
    site = open_site(registry.root)
    outcome = found_root(site, [(each.public, load_private(each.key, None)) for each in people], 2, 1_800_000_000)

    assert outcome.is_adopted
    assert look(site).draft is None
    site.database.close()


# A copy whose registry is in other hands


def _change(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def _forge_root(stick: Path) -> None:
    _change(stick / "adopted-root.json", _set("signed", "expires", to="2030-01-01T00:00:00Z"))


def _forge_targets(stick: Path) -> None:
    _change(stick / "adopted-targets.json", _set("signed", "expires", to="2030-01-01T00:00:00Z"))


def _forge_keyring(stick: Path) -> None:
    path = stick / "adopted-keyring.json"
    path.write_text(path.read_text().replace('"serial":1', '"serial":2'))


def _strip_root(stick: Path) -> None:
    _change(stick / "adopted-root.json", _set("signatures", to=[]))


def _strip_targets(stick: Path) -> None:
    _change(stick / "adopted-targets.json", _set("signatures", to=[]))


@pytest.mark.parametrize(
    ("forge", "code", "message"),
    [
        (_forge_root, 20, "its `adopted-root.json` was changed after signing: its signature does not fit"),
        (_forge_targets, 20, "its `adopted-targets.json` was changed after signing: its signature does not fit"),
        (_strip_root, 20, "its `adopted-root.json` has no signature"),
        (_strip_targets, 20, "its `adopted-targets.json` has no signature"),
        (_forge_keyring, 24, "its adopted targets do not list its `adopted-keyring.json`"),
    ],
)
def test_a_copy_is_not_signed_where_what_it_calls_adopted_is_not_vouched_for(
    registry: Registry,
    people: tuple[Holder, ...],
    tmp_path: Path,
    forge: Callable[[Path], None],
    code: int,
    message: str,
) -> None:
    _one_of_one(registry, people[0])
    registry.run("root", "rotate").ok()
    stick = registry.carry(tmp_path / "stick")
    forge(stick)
    before = (stick / "root.json").read_bytes()

    said = run("root", "sign", people[0].key, "--draft", stick, "--json")

    assert said.code == code
    assert said.document["error"]["message"] == f"the copy is not what the registry adopted: {message}"
    assert (stick / "root.json").read_bytes() == before


def test_a_copy_is_not_signed_where_its_adopted_root_is_missing_alone(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    _one_of_one(registry, people[0])
    registry.run("root", "rotate").ok()
    stick = registry.carry(tmp_path / "stick")
    (stick / "adopted-root.json").unlink()

    said = run("root", "sign", people[0].key, "--draft", stick, "--json")

    assert said.code == 26
    assert said.document["error"]["hint"] == "sign nothing; copy the draft's folder from the registry again"


@pytest.fixture
def forged(registry: Registry, people: tuple[Holder, ...], tmp_path: Path) -> Path:
    """A copy whose owner of the host has forged all: mallory's key is said to have been adopted long ago."""
    ana, mallory = people[0], holder(tmp_path, "mallory")
    other = Registry(Path(shutil.copytree(registry.root, tmp_path / "forged")))
    _one_of_one(registry, ana)
    other.run("root", "init", ana.pub, mallory.pub, *_signs(mallory)).ok()
    core = holder(tmp_path, "core", KeyRole.CORE)
    other.run("keyring", "add", core.pub, *_signs(mallory)).ok()
    other.run("root", "rotate").ok()
    return other.carry(tmp_path / "stick")


@pytest.mark.parametrize("words", [("sign", "{ana}"), ("show",)])
def test_a_copy_is_shown_whole_since_its_changes_may_be_forged(
    people: tuple[Holder, ...], tmp_path: Path, forged: Path, words: tuple[str, ...]
) -> None:
    said = run("root", *(word.format(ana=people[0].key) for word in words), "--draft", forged).ok()

    keyids = {
        name: PublicKeyFile.from_bytes((tmp_path / name / f"{name}.pub").read_bytes()).keyid
        for name in ("mallory", "core")
    }
    assert f"  root key: {keyids['mallory']} `mallory`\n" in said.err
    assert f"  keyring key: core {keyids['core']}\n" in said.err
    assert "  registry: team.local\n" in said.err
    assert "  root threshold: 1 of 2\n" in said.err
    assert "  bins: 64\n" in said.err
    assert "  root until: 20" in said.err
    assert "  targets and keyring until: 20" in said.err


def test_a_copy_is_held_to_the_root_that_its_signer_knows(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path, forged: Path
) -> None:
    known = LoaderConf.read(registry.loader_conf).require_root().sha256
    registry.run("root", "rotate").ok()
    true = registry.carry(tmp_path / "true")

    refused = run("root", "sign", people[0].key, "--draft", forged, "--root-sha256", known, "--json")

    assert refused.code == 24
    assert refused.document["error"]["message"].startswith(
        "the copy is not what the registry adopted: it follows the root with the digest sha256:"
    )
    assert f"  sha256 {known}\n" in registry.run("root", "show").ok().out
    run("root", "sign", people[0].key, "--draft", true, "--root-sha256", known).ok()


@pytest.mark.parametrize("file", ["root", "targets"])
@pytest.mark.parametrize(
    ("expires", "code", "message"),
    [
        ("9998-01-01T00:00:00Z", 26, "more than the 365 days that it may live"),
        ("2021-01-01T00:00:00Z", 23, "the draft would end at 2021-01-01T00:00:00Z"),
    ],
)
def test_a_draft_that_ends_out_of_bounds_is_neither_signed_nor_adopted(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path, file: str, expires: str, code: int, message: str
) -> None:
    registry.run("root", "init", people[0].pub).ok()
    _change(registry.draft / f"{file}.json", _set("signed", "expires", to=expires))
    stick = registry.carry(tmp_path / "stick")

    here = registry.refuses("root", "sign", people[0].key)
    elsewhere = run("root", "sign", people[0].key, "--draft", stick, "--json")

    assert (here[0], elsewhere.code) == (code, code)
    assert message in here[1]
    assert message in elsewhere.document["error"]["message"]


@pytest.mark.parametrize("file", ["root", "targets"])
@pytest.mark.parametrize("bound", [None, "other.local", "\x1b[2J"])
def test_a_draft_that_is_bound_to_no_registry_or_another_is_not_signed(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path, file: str, bound: str | None
) -> None:
    registry.run("root", "init", people[0].pub).ok()
    _change(registry.draft / f"{file}.json", _set("signed", "x-spm-registry", to=bound))
    if bound is None:
        _change(registry.draft / f"{file}.json", lambda document: document["signed"].pop("x-spm-registry"))
    stick = registry.carry(tmp_path / "stick")

    refused = registry.refuses("root", "sign", people[0].key)
    elsewhere = run("root", "sign", people[0].key, "--draft", stick)

    whose = "no registry" if bound is None else f"the registry {bound!r}"
    assert refused[:2] == (26, f"`{file}` is bound to {whose}, and its keyring to `team.local`")
    assert (elsewhere.code, "\x1b" in elsewhere.err) == (26, False)


def test_root_and_targets_name_their_registry(registry: Registry, people: tuple[Holder, ...]) -> None:
    _one_of_one(registry, people[0])

    served = [registry.asking()(f"/v1/tuf/1.{role}.json")[1] for role in ("root", "targets")]

    assert [json.loads(data)["signed"]["x-spm-registry"] for data in served] == 2 * ["team.local"]


@pytest.mark.parametrize("member", ["_type", "expires", "spec_version"])
def test_what_the_library_says_of_a_draft_does_not_draw_on_the_terminal(
    registry: Registry, people: tuple[Holder, ...], member: str
) -> None:
    registry.run("root", "init", people[0].pub).ok()
    _change(registry.draft / "root.json", _set("signed", member, to="\x1b[2J\u202e"))

    said = registry.run("root", "show")

    assert (said.code, said.err.isascii(), "\x1b" in said.err) == (26, True, False)


def test_a_change_of_what_a_publishers_plugins_may_do_is_told(
    registry: Registry, people: tuple[Holder, ...], tmp_path: Path
) -> None:
    _one_of_one(registry, people[0])
    ext = holder(tmp_path, "mel", KeyRole.EXT)
    registry.run("keyring", "add", ext.pub, "--names", "mel-*", *_signs(people[0])).ok()
    site = open_site(registry.root)
    adopted = look(site).adopted
    site.database.close()
    assert adopted is not None
    before = terms_of(adopted, adopted)
    keyring = before.keyring.keyring
    wide = replace(keyring.ext_keys[0], ceiling=Capabilities(network=True))
    after = replace(before, keyring=replace(before.keyring, keyring=replace(keyring, ext_keys=(wide,))))

    told = changes(before, after)

    assert [line.partition(":")[0] for line in told] == ["keyring key added", "keyring key removed"]
    assert '"network": true' in told[0]
    assert "capabilities" not in told[1]
