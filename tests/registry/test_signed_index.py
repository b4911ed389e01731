"""The signed index: python-tuf's own client verifies it after every step, and a step happens whole or not at all."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from securesystemslib.signer import CryptoSigner, Key, Signature, Signer
from tuf.api.exceptions import BadVersionNumberError

from manifests.errors import ConfigError
from registry.services.online_key import add_online_key, new_online_pem, newest_online_key, signer_with
from registry.services.signed_index import OfflineFiles, found, moment, online_keyid, publish_shard, renew
from registry.storage.database import Database
from registry.storage.records import Records
from registry.storage.rows import SignedRow
from registry.storage.site import Site, new_site
from tests.registry.roots import HandMadeRoot, keyring_document, new_signer, publish, put_shard
from tests.registry.tuf_client import TufClient

START = 1_800_000_000
DAY = 86_400
BINS = ("bin-0", "bin-1", "bin-2", "bin-3")
NAMES = ("audio-encoder", "log-mel", "mel-view", "fused-gelu", "vad")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[HandMadeRoot]:
    """Give a site with four bins and no shard."""
    with new_site(tmp_path / "registry", new_online_pem()) as site:
        with site.database.writing() as records:
            records.add_registry("team.local", START)
        yield HandMadeRoot(site, START, bits=2)
        site.database.close()


def _signer(site: Site, records: Records) -> CryptoSigner:
    return signer_with(site, online_keyid(records))


def _renew(site: Site, now: int) -> None:
    with site.database.writing() as records:
        renew(records, _signer(site, records), now)


def _ask(site: Site) -> Callable[[str], tuple[int, bytes]]:
    """Answer as the registry does, straight from the records."""

    def file(records: Records, path: str) -> bytes | None:
        if path.startswith("targets/index/"):
            sha256, name = path.removeprefix("targets/index/").removesuffix(".json").split(".")
            shard = records.shard(name)
            is_current = shard is not None and shard.etag == f'"{sha256}"'
            return shard.data if shard and is_current else records.signed.kept_shard(name, sha256)
        if path.startswith("targets/"):
            return _data(records.signed.with_digest("keyring", path.removeprefix("targets/").split(".")[0]))
        if path == "timestamp.json":
            return _data(records.signed.current("timestamp"))
        version, role = path.removesuffix(".json").split(".")
        return _data(records.signed.at(role, int(version)))

    def ask(path: str) -> tuple[int, bytes]:
        with site.database.reading() as records:
            data = file(records, path.removeprefix("/v1/tuf/"))
        return (404, b"") if data is None else (200, data)

    return ask


def _data(row: SignedRow | None) -> bytes | None:
    return None if row is None else row.data


def _client(root: HandMadeRoot, folder: Path, now: int = START) -> TufClient:
    with root.site.database.reading() as records:
        first = records.signed.at("root", 1)
    assert first is not None
    return TufClient(folder, _ask(root.site), first.data, moment(now))


def _text(client: TufClient, name: str) -> str:
    data = client.target(f"index/{name}.json")
    assert data is not None
    return str(json.loads(data)["text"])


def _state(site: Site) -> list[object]:
    with site.database.connection() as connection:
        tables = ("tuf_files", "shard_files", "shards")
        return [sorted(map(str, connection.exec_driver_sql(f"SELECT * FROM {name}"))) for name in tables]


def test_the_first_root_signs_in_every_shard_there_is(root: HandMadeRoot, tmp_path: Path) -> None:
    with root.site.database.writing() as records:
        for name in NAMES:
            put_shard(records, name, "before", START)

    root.found()

    client = _client(root, tmp_path / "client")
    assert client.versions() == {"timestamp": 1, "snapshot": 1, "targets": 1, **dict.fromkeys(BINS, 1)}
    assert [_text(client, name) for name in NAMES] == ["before"] * len(NAMES)
    assert client.target("keyring.json") == keyring_document()
    assert client.target("index/unknown.json") is None


def test_the_timestamp_says_when_it_was_signed(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()

    timestamp = _client(root, tmp_path / "client").updater._trusted_set.timestamp

    assert timestamp.unrecognized_fields == {"issued": "2027-01-15T08:00:00Z"}
    assert timestamp.expires == moment(START + DAY)


def test_a_registry_has_one_first_root(root: HandMadeRoot) -> None:
    root.found()
    before = _state(root.site)

    with pytest.raises(ConfigError) as caught:
        root.found()

    assert caught.value.message == "this registry has a root already"
    assert caught.value.hint == "change it with `spm-registry root rotate`"
    assert _state(root.site) == before


def test_a_publish_signs_one_bin_the_snapshot_and_the_timestamp(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()

    publish(root.site, "audio-encoder", "new", START + 1)

    client = _client(root, tmp_path / "client")
    assert client.versions() == {"timestamp": 2, "snapshot": 2, "targets": 1, **dict.fromkeys(BINS, 1), "bin-1": 2}
    assert _text(client, "audio-encoder") == "new"


def test_shards_of_one_bin_stay_beside_each_other(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()

    for name in NAMES:
        publish(root.site, name, "first", START + 1)
    publish(root.site, "log-mel", "second", START + 2)

    client = _client(root, tmp_path / "client")
    assert {name: _text(client, name) for name in NAMES} == dict.fromkeys(NAMES, "first") | {"log-mel": "second"}


def test_a_client_goes_on_from_what_it_has_seen(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()
    _client(root, tmp_path / "client")

    for number in range(3):
        publish(root.site, "log-mel", str(number), START + number)
        assert _text(_client(root, tmp_path / "client"), "log-mel") == str(number)


@pytest.mark.parametrize(
    ("after", "renewed"),
    [
        (DAY // 2 - 1, set()),
        (DAY // 2, {"timestamp"}),
        (7 * DAY // 2 - 1, {"timestamp"}),
        (7 * DAY // 2, {"timestamp", "snapshot"}),
        (45 * DAY - 1, {"timestamp", "snapshot"}),
        (45 * DAY, {"timestamp", "snapshot", *BINS}),
        (400 * DAY, {"timestamp", "snapshot", *BINS}),
    ],
)
def test_what_has_lived_half_its_life_is_renewed(
    root: HandMadeRoot, tmp_path: Path, after: int, renewed: set[str]
) -> None:
    root.found()
    before = _client(root, tmp_path / "before").versions()

    _renew(root.site, START + after)

    expected = {role: version + (role in renewed) for role, version in before.items()}
    assert _client(root, tmp_path / "after").versions() == expected


def test_a_publish_renews_what_is_due(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()

    publish(root.site, "audio-encoder", "new", START + 45 * DAY)

    client = _client(root, tmp_path / "client", START + 45 * DAY)
    assert client.versions() == {"timestamp": 2, "snapshot": 2, "targets": 1, **dict.fromkeys(BINS, 2)}


def test_a_new_keyring_is_listed_by_new_targets(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()
    online = newest_online_key(root.site)
    document = keyring_document(2)

    root.replace(OfflineFiles(targets=root.targets(2, online, document), keyring=document), START + 1)

    client = _client(root, tmp_path / "client")
    assert client.versions() == {"timestamp": 2, "snapshot": 2, "targets": 2, **dict.fromkeys(BINS, 1)}
    assert client.target("keyring.json") == document


def test_a_new_online_key_signs_every_bin_anew(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()
    publish(root.site, "audio-encoder", "kept", START)
    _client(root, tmp_path / "client")
    with root.site.database.reading() as records:
        old = online_keyid(records)

    new = add_online_key(root.site, old)
    root.replace(root.files(2, new, keyring_document(2)), START + 1, new.keyid)

    client = _client(root, tmp_path / "client")
    assert client.updater._trusted_set.root.version == 2
    assert client.versions() == {"timestamp": 3, "snapshot": 3, "targets": 2, **dict.fromkeys(BINS, 2), "bin-1": 3}
    assert _text(client, "audio-encoder") == "kept"
    publish(root.site, "audio-encoder", "signed by the new one", START + 2)
    assert _text(_client(root, tmp_path / "client"), "audio-encoder") == "signed by the new one"


def test_an_online_key_that_no_root_names_yet_signs_nothing(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()
    with root.site.database.reading() as records:
        add_online_key(root.site, online_keyid(records))

    publish(root.site, "audio-encoder", "signed by the old one", START + 1)

    assert _text(_client(root, tmp_path / "client"), "audio-encoder") == "signed by the old one"


def test_a_lost_online_key_is_told(root: HandMadeRoot) -> None:
    root.found()
    with root.site.database.reading() as records:
        lost = online_keyid(records)
    root.site.online_key.write_bytes(new_online_pem())

    with pytest.raises(ConfigError) as caught:
        signer_with(root.site, lost)

    assert caught.value.message == (
        f"{root.site.online_key} does not hold the online key {lost} that the adopted root names"
    )
    assert caught.value.hint == (
        "put it back from a backup; where it is lost, name a new one with `spm-registry root rotate --online`"
    )


def _skipped_root(root: HandMadeRoot, online: Key) -> tuple[OfflineFiles, str]:
    files = OfflineFiles(root=root.root(3, online))
    return files, "the root has the version 3, and the next one here is 2"


def _same_targets(root: HandMadeRoot, online: Key) -> tuple[OfflineFiles, str]:
    files = OfflineFiles(targets=root.targets(1, online, keyring_document()))
    return files, "the targets has the version 1, and the next one here is 2"


def _more_bins(root: HandMadeRoot, online: Key) -> tuple[OfflineFiles, str]:
    more = HandMadeRoot(root.site, START, bits=3, signer=root.signer)
    files = OfflineFiles(targets=more.targets(2, online, keyring_document()))
    return files, "the number of bins cannot change: clients would take it for withdrawn files"


def _unlisted_keyring(root: HandMadeRoot, online: Key) -> tuple[OfflineFiles, str]:
    return OfflineFiles(keyring=keyring_document(2)), (
        "the targets must list the keyring document, as it is here, and nothing else"
    )


def _foreign_online_key(root: HandMadeRoot, online: Key) -> tuple[OfflineFiles, str]:
    foreign = new_signer().public_key
    named = ", ".join(sorted((online.keyid, foreign.keyid)))
    return OfflineFiles(root=root.root(2, foreign)), (
        f"root and targets name the online keys {named}, and this registry signs with {online.keyid}"
    )


@pytest.mark.parametrize("case", [_skipped_root, _same_targets, _more_bins, _unlisted_keyring, _foreign_online_key])
def test_what_does_not_fit_what_is_there_is_refused(
    root: HandMadeRoot, case: Callable[[HandMadeRoot, Key], tuple[OfflineFiles, str]]
) -> None:
    root.found()
    online = newest_online_key(root.site)
    files, message = case(root, online)
    before = _state(root.site)

    with pytest.raises(ConfigError) as caught:
        root.replace(files, START + 1, online.keyid)

    assert caught.value.message == message
    assert _state(root.site) == before


class _Tiring(Signer):
    """A signer that gives up after so many signatures."""

    def __init__(self, behind: Signer, left: int) -> None:
        self._behind = behind
        self._left = left

    @property
    def public_key(self) -> Key:
        return self._behind.public_key

    @classmethod
    def from_priv_key_uri(cls, priv_key_uri: str, public_key: Key, secrets_handler: object = None) -> Signer:
        raise NotImplementedError

    def sign(self, payload: bytes) -> Signature:
        if self._left == 0:
            raise InterruptedError("tired")
        self._left -= 1
        return self._behind.sign(payload)


@pytest.mark.parametrize("signatures", [0, 1, 2])
def test_a_publish_that_ends_between_two_signatures_never_happened(
    root: HandMadeRoot, tmp_path: Path, signatures: int
) -> None:
    root.found()
    publish(root.site, "audio-encoder", "old", START)
    before = _state(root.site)
    with root.site.database.reading() as records:
        signer = _Tiring(_signer(root.site, records), signatures)

    with pytest.raises(Exception, match="Failed to sign: tired"):
        publish(root.site, "audio-encoder", "new", START + 1, signer)

    assert _state(root.site) == before
    assert _text(_client(root, tmp_path / "client"), "audio-encoder") == "old"


@pytest.mark.parametrize("signatures", range(6))
def test_a_first_root_whose_signing_ends_early_is_no_root(root: HandMadeRoot, signatures: int) -> None:
    before = _state(root.site)
    online = newest_online_key(root.site)
    signer = _Tiring(signer_with(root.site, online.keyid), signatures)

    with pytest.raises(Exception, match="Failed to sign: tired"), root.site.database.writing() as records:
        found(records, root.files(1, online, keyring_document()), signer, START)

    assert _state(root.site) == before


def test_what_was_replaced_stays_for_a_day(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()
    publish(root.site, "audio-encoder", "first", START)
    ask, client = _ask(root.site), _client(root, tmp_path / "slow")
    publish(root.site, "audio-encoder", "second", START + 10)

    publish(root.site, "log-mel", "another", START + 10 + DAY - 1)
    late = _text(client, "audio-encoder")
    publish(root.site, "log-mel", "and another", START + 10 + DAY)

    assert late == "first"
    gone = ["2.snapshot.json", "2.bin-1.json", "1.snapshot.json", "1.bin-1.json"]
    assert [ask(path)[0] for path in gone] == [404] * 4
    assert [ask(path)[0] for path in ("3.snapshot.json", "3.bin-1.json", "1.bin-0.json")] == [200] * 3
    assert ask(f"targets/index/{_digest('audio-encoder', 'first')}.audio-encoder.json")[0] == 404
    assert ask(f"targets/index/{_digest('audio-encoder', 'second')}.audio-encoder.json")[0] == 200


def _digest(name: str, text: str) -> str:
    return hashlib.sha256(json.dumps({"name": name, "text": text}).encode()).hexdigest()


def test_what_leads_from_the_first_root_stays_for_ever(root: HandMadeRoot) -> None:
    root.found()
    online = newest_online_key(root.site)
    root.replace(root.files(2, online, keyring_document(2)), START + 1)

    publish(root.site, "log-mel", "later", START + 300 * DAY)

    first = hashlib.sha256(keyring_document()).hexdigest()
    paths = ("1.root.json", "2.root.json", "1.targets.json", "2.targets.json", f"targets/{first}.keyring.json")
    assert [_ask(root.site)(path)[0] for path in paths] == [200] * 5


def test_the_very_same_shard_can_come_back(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()
    for number, text in enumerate(("offered", "yanked", "offered", "yanked", "offered")):
        publish(root.site, "audio-encoder", text, START + number)

    assert _text(_client(root, tmp_path / "client"), "audio-encoder") == "offered"


def test_two_who_publish_at_once_both_are_signed_in(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()
    names = [[f"plugin-{worker}-{number}" for number in range(8)] for worker in range(2)]

    def publish_all(mine: list[str]) -> None:
        site = replace(root.site, database=Database.at(root.site.root / "registry.db"))
        for name in mine:
            publish(site, name, name, START + 1)
        site.database.close()

    workers = [threading.Thread(target=publish_all, args=(mine,)) for mine in names]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    client = _client(root, tmp_path / "client")
    assert [_text(client, name) for mine in names for name in mine] == [name for mine in names for name in mine]
    assert (client.versions()["timestamp"], client.versions()["snapshot"]) == (17, 17)


def test_a_restored_backup_needs_a_new_online_key_for_clients_that_saw_more(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()
    (tmp_path / "old.db").touch()
    root.site.database.copy_to(tmp_path / "old.db")
    publish(root.site, "log-mel", "after the backup", START)
    _client(root, tmp_path / "client")
    restored = HandMadeRoot(
        replace(root.site, database=Database.at(tmp_path / "old.db")), START, bits=2, signer=root.signer
    )

    with pytest.raises(BadVersionNumberError):
        _client(restored, tmp_path / "client")
    new = add_online_key(restored.site, newest_online_key(restored.site).keyid)
    restored.replace(restored.files(2, new, keyring_document(2)), START + 1, new.keyid)

    assert _client(restored, tmp_path / "client").target("index/log-mel.json") is None
    restored.site.database.close()


def test_a_new_online_key_signs_nothing_that_only_the_old_one_vouched_for(root: HandMadeRoot, tmp_path: Path) -> None:
    root.found()
    publish(root.site, "audio-encoder", "ours", START)
    with root.site.database.writing() as records:
        put_shard(records, "rogue", "theirs", START)
        publish_shard(records, _signer(root.site, records), "rogue", START)
    with root.site.database.connection() as connection:
        connection.exec_driver_sql("DELETE FROM shards WHERE name = 'rogue'")

    new = add_online_key(root.site, newest_online_key(root.site).keyid)
    root.replace(root.files(2, new, keyring_document(2)), START + 1, new.keyid)

    client = _client(root, tmp_path / "client")
    assert client.target("index/rogue.json") is None
    assert _text(client, "audio-encoder") == "ours"
