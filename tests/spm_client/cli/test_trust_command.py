"""`spm trust` and `spm doctor`: what is trusted, told in words and as JSON; and the first problem decides the exit."""

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from keys.key_files import PublicKeyFile, load_public
from keys.trust_state import MOMENT, read_trust_state
from manifests.errors import LayerMissing
from tests.e2e.snapshots import unchanged
from tests.fakes.served_files import ServedFiles
from tests.fakes.simulated_registry import SimulatedRegistry, fresh_index
from tests.spm_client.cli.conftest import Spm, Told

REMEDY = "`spm trust init` begins from the root that loader.conf pins"


@dataclass
class Host:
    """A store that trusts a simulated registry, and `spm` over it."""

    spm: Spm
    root: Path
    registry: SimulatedRegistry
    url: str

    def __call__(self, *arguments: str | Path) -> Told:
        return self.spm("--root", self.root, *arguments)

    def pin(self, more: str = "") -> None:
        (self.root / "loader.conf").write_text(self.registry.loader_conf(self.url, more))
        (self.root / "loader.conf").chmod(0o644)

    def rows(self) -> dict[str, list[tuple[str, str]]]:
        """Return what `spm doctor` tells: status and words of each thing that it looked at."""
        found: dict[str, list[tuple[str, str]]] = {}
        for point in self("doctor", "--json").document["points"]:
            found.setdefault(point["about"], []).append((point["status"], point["told"]))
        return found


@pytest.fixture
def host(spm: Spm, tmp_path: Path) -> Iterator[Host]:
    registry = SimulatedRegistry()
    registry.publish("beta")
    (tmp_path / "store").mkdir(mode=0o755)
    with ServedFiles(registry.file) as served:
        made = Host(spm, tmp_path / "store", registry, served.url)
        made.pin()
        yield made


def summary(host: Host, *, serial: int = 1, key: str = "") -> str:
    index, pin = host.registry.index, host.registry.index.root_pin
    of_key = f"{host.registry.keyid[:16]}… of `team` for `*`"
    return (
        f"registry  team.example at {host.url}\n"
        f"root      version 1, its only key must sign, until {index.now + timedelta(days=400):{MOMENT}}; "
        f"loader.conf pins version 1 (sha256:{pin.sha256[:16]}…)\n"
        f"index     {index_text(host)}\n"
        f"keyring   serial {serial}; core plugins need 1 signature\n"
        + (f"revoked   ext key {of_key}, {key}\n" if key else f"ext key   {of_key}, from loader.conf\n")
    )


def index_text(host: Host) -> str:
    state = read_trust_state(host.root)
    assert state is not None
    return f"signed {state.issued:{MOMENT}}, until {state.expires:{MOMENT}}"


def test_trust_begins_and_is_shown(host: Host) -> None:
    made = host("trust", "init")

    assert (made.code, made.out, made.err) == (0, summary(host), "")
    with unchanged(host.root):
        assert host("trust", "show") == made


@pytest.mark.parametrize("action", ["init", "update"])
def test_where_nothing_has_changed_one_line_says_so(host: Host, action: str) -> None:
    host("trust", "init")

    with unchanged(host.root):
        told = host("trust", action)
        document = host("trust", action, "--json").document

    assert told == Told(0, f"nothing has changed: root 1, keyring 1; index {index_text(host)}\n", "")
    assert (document["is_begun"], document["changes"], document["refused"]) == (False, [], [])


def test_an_update_says_what_was_revoked_and_what_is_refused_for_it(host: Host) -> None:
    host("install", "beta")
    host.registry.revoke_key()
    host.registry.index.publish_root()

    updated = host("trust", "update")

    keyid = host.registry.keyid[:16]
    remedy = "uninstall it (`spm uninstall beta`) or install a later release"
    assert updated == Told(
        0,
        "root 1 -> 2\n"
        f"keyring 1 -> 2: revoked key {keyid}… (compromised)\n"
        f"refused from now on: `beta` 1.0.0 (key-revoked): {remedy}\n",
        "",
    )
    assert host("trust", "update").out == (
        f"nothing has changed: root 2, keyring 2; index {index_text(host)}\n"
        f"still refused: `beta` 1.0.0 (key-revoked): {remedy}\n"
    )


def test_a_list_marks_what_is_revoked(host: Host) -> None:
    host("install", "beta")
    before = host("list")
    host.registry.revoke_key()
    host("trust", "update")

    told = host("list")

    heading = "NAME  VERSION  CLASS  BOUND TO  BATCH  WANTED BY\nbeta  1.0.0    ext    -         -      you\n"
    assert before.out == heading
    assert told.out == (
        "NAME  VERSION          CLASS  BOUND TO  BATCH  WANTED BY\nbeta  1.0.0 (revoked)  ext    -         -      you\n"
    )
    assert [entry["is_revoked"] for entry in host("list", "--json").document["plugins"]] == [True]


def test_a_list_imports_nothing_that_verifies(host: Host) -> None:
    host("install", "beta")
    code = "import sys; from spm_client.cli.main import main; main(sys.argv[1:]); print(*sorted(sys.modules))"

    listed = subprocess.run(
        [sys.executable, "-c", code, "--root", str(host.root), "list"], capture_output=True, text=True, check=True
    )

    roots = {name.partition(".")[0] for name in listed.stdout.splitlines()[-1].split()}
    assert roots & {"cryptography", "tuf", "securesystemslib", "tomllib"} == set()


def test_an_update_says_as_json_what_changed(host: Host) -> None:
    digest = host.registry.publish("gamma")
    host("install", "gamma")
    host.registry.revoke_manifest(digest)

    told = host("trust", "update", "--json").document

    assert told["is_begun"] is False
    assert told["changes"] == [
        {
            "about": "keyring",
            "before": 1,
            "after": 2,
            "revoked_keys": [],
            "revoked_manifests": [digest],
            "added_keys": [],
            "removed_keys": [],
            "changed_keys": [],
            "core_threshold": 1,
        }
    ]
    (refused,) = told["refused"]
    assert (refused["name"], refused["version"], refused["is_new"]) == ("gamma", "1.0.0", True)
    assert refused["error"]["reason"] == "artifact-revoked"


def test_an_update_says_which_keys_came_and_went(host: Host, tmp_path: Path) -> None:
    host("trust", "init")
    key = public_key(host, tmp_path, "core")
    index = host.registry.index
    index.publish_keyring(index.keyring.with_key(key, (), None).following())

    added = host("trust", "update")
    shown = host("trust", "show")
    index.publish_keyring(index.keyring.without_key(key.keyid).following())
    removed = host("trust", "update")

    assert added.out == f"keyring 1 -> 2: key added {key.keyid[:16]}… (core)\n"
    assert f"core key  {key.keyid[:16]}…, from keyring\n" in shown.out
    assert removed.out == f"keyring 2 -> 3: key removed {key.keyid[:16]}… (core)\n"


def public_key(host: Host, tmp_path: Path, role: str) -> PublicKeyFile:
    host("keys", "new", "--role", role, "--no-passphrase", "--keys", tmp_path / "keys")
    return load_public(tmp_path / "keys" / f"{role}.pub")


def test_a_retired_key_is_shown_as_revoked_and_not_as_one_in_force(host: Host) -> None:
    host.registry.revoke_key(since="2026-06-01T00:00:00Z")

    told = host("trust", "init")

    assert told == Told(0, summary(host, serial=2, key="retired since 2026-06-01T00:00:00Z"), "")
    assert [about for about in host.rows() if about in {"ext key", "revoked"}] == ["revoked"]


def test_trust_as_json_has_whole_digests(host: Host) -> None:
    told = host("trust", "init", "--json").document

    pin = host.registry.index.root_pin
    assert told["is_begun"] is True
    assert told["pin"] == {"version": 1, "sha256": pin.sha256}
    assert told["root"]["keyids"] == [signer.public_key.keyid for signer in host.registry.index.root_signers]
    assert told["keyring"]["ext"] == [
        {
            "keyid": host.registry.keyid,
            "expires": None,
            "from": "loader.conf",
            "is_revoked": False,
            "publisher": "team",
            "names": ["*"],
        }
    ]


def test_it_is_told_before_root_and_targets_end(host: Host) -> None:
    index = host.registry.index
    index.lifetimes |= {"root": timedelta(days=9, hours=1), "targets": timedelta(days=-1)}
    host("trust", "init")
    index.publish_root()
    until = f"{index.now + timedelta(days=9, hours=1):%Y-%m-%d}"
    warning = (
        f"root 2 ends in 9 days ({until}): then every install is refused until its holders have renewed it; "
        "tell the registry's administrator"
    )

    updated, shown = host("trust", "update"), host("trust", "show", "--json")

    assert updated == Told(0, "root 1 -> 2\n", f"warning[ending]: {warning}\n")
    assert (shown.document["warnings"], shown.err) == ([warning], f"warning[ending]: {warning}\n")
    assert ("warning", warning) in host.rows()["root"]


def test_a_doctor_tells_before_a_pinned_key_ends(host: Host) -> None:
    until = datetime.now(UTC) + timedelta(days=9, hours=1)
    host.pin(f'expires = "{until:{MOMENT}}"\n')
    host("trust", "init")

    told = host.rows()["ext key"]

    keyid = host.registry.keyid[:16]
    assert told == [
        ("good", f"{keyid}… of `team` for `*`, until {until:{MOMENT}}, from loader.conf"),
        (
            "warning",
            f"the key {keyid}… ends in 9 days ({until:%Y-%m-%d}): what it signs later does not count; "
            "its owner needs a new key, or a later end where this one is pinned",
        ),
    ]


def test_another_pinned_root_is_refused_until_trust_begins_anew(host: Host) -> None:
    host("install", "beta")
    old = host.registry.index.root_pin.sha256
    host.registry.index = index = fresh_index()
    host.registry.shards.clear()
    host.registry.publish("beta")
    host.pin()

    refused = [host("trust", action) for action in ("update", "show")] + [host("install", "beta")]
    begun = host("trust", "init")

    assert {one.code for one in refused} == {26}
    assert {one.err for one in refused} == {
        f"error[conf-syntax]: the store trusts the registry `team.example` by the root sha256:{old}, "
        f"but loader.conf pins `team.example` by sha256:{index.root_pin.sha256}\n"
        "  hint: put the old loader.conf back; or, if the change is meant, `spm trust init` begins anew from the new "
        "pin, and forgets what was seen of the old root\n"
    }
    assert begun == Told(0, summary(host), "")
    assert host("install", "beta").code == 0


def test_where_nothing_is_remembered_nothing_is_shown_or_exported(host: Host, tmp_path: Path) -> None:
    for words in (("trust", "show"), ("trust", "export", tmp_path / "trust.json")):
        with unchanged(tmp_path):
            told = host(*words)
        assert told == Told(
            3,
            "",
            f"error[unknown:revocations]: `{host.root}/trust` is empty: this store remembers nothing of the registry "
            f"`team.example`\n  hint: {REMEDY}\n",
        )


def test_a_trust_file_that_is_none_is_refused(host: Host, tmp_path: Path) -> None:
    (tmp_path / "speech.wav").write_bytes(b"RIFF\x24\x08")

    with unchanged(host.root):
        missing = host("trust", "import", tmp_path / "none.json")
        strange = host("trust", "import", tmp_path / "speech.wav")

    assert missing.err == (
        f"error[usage]: the trust file `{tmp_path}/none.json` cannot be read: No such file or directory\n"
    )
    assert missing.code == 2
    assert strange == Told(
        25,
        "",
        f"error[type]: `{tmp_path}/speech.wav` is not a trust file\n  hint: `spm trust export` writes one\n",
    )


def test_an_export_is_taken_elsewhere(host: Host, tmp_path: Path) -> None:
    host("trust", "init")
    exported = host("trust", "export", tmp_path / "trust.json")
    for path in sorted((host.root / "trust").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()

    taken = host("trust", "import", tmp_path / "trust.json")

    assert exported.out == (
        f"wrote the root keys' word on team.example to {tmp_path}/trust.json; `spm trust import` takes it elsewhere\n"
    )
    assert "index     never fetched from the registry; the keyring came in a file\n" in taken.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store", "trust.json"]


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_an_export_replaces_nothing_unasked(host: Host, tmp_path: Path, kind: str) -> None:
    host("trust", "init")
    path = tmp_path / "trust.json"
    (tmp_path / "other").write_text("kept")
    if kind == "file":
        path.write_text("kept")
    elif kind == "link":
        path.symlink_to(tmp_path / "other")
    else:
        path.mkdir()

    with unchanged(tmp_path):
        refused = host("trust", "export", path)
    forced = host("trust", "export", path, "--force")

    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith(f"error[usage]: `{path}` is ")
    assert (tmp_path / "other").read_text() == "kept"
    assert forced.code == (2 if kind == "folder" else 0)
    assert kind == "folder" or not path.is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["other", "store", "trust.json"]


def test_a_pipe_is_no_trust_file(host: Host, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    told = host("trust", "import", tmp_path / "pipe")

    assert told.err == f"error[usage]: the trust file `{tmp_path}/pipe` is no file, but a pipe or device\n"


def test_a_doctor_finds_a_good_store_good(host: Host) -> None:
    host("install", "beta")

    told = host("doctor")

    assert (told.code, told.err) == (0, "")
    rows = host.rows()
    assert {status for found in rows.values() for status, _ in found} == {"good", "named", "warning"}
    user = "`root`" if os.geteuid() == 0 else f"the user `{pwd.getpwuid(os.geteuid()).pw_name}`"
    conf = f"{host.root}/loader.conf has the mode 0644 and belongs to {user}"
    assert rows["registry"] == [("named", f"team.example at {host.url}")]
    assert rows["loader.conf"] == [("good", conf)]
    assert rows["store"] == [("good", f"{host.root} can be changed by its owner only")]
    assert rows["root"][1] == (
        "warning",
        "one root key alone can change what is trusted; a threshold of 2 would need two holders",
    )
    assert rows["installed"] == [("good", "1 of 1 plugin with signatures that count; `spm verify` reads all files")]
    assert rows["index"][0][1].endswith("; 0 hours old")


def fits_or_has_a_long_path(line: str) -> bool:
    """Tell whether a line is at most 100 wide, but for a path: those are never broken, wherever the tests run."""
    return len(line) <= 100 or any("/" in word and len(word) > 60 for word in line.split())


def test_a_doctor_names_what_is_refused_now(host: Host) -> None:
    host("install", "beta")
    host.registry.revoke_key()
    host("trust", "update")

    told = host("doctor")

    message = (
        f"`beta` 1.0.0 is refused: the manifest, made at 2026-01-31T12:00:00Z, is signed by the key "
        f"{host.registry.keyid}, which is revoked as compromised: nothing that it ever signed counts"
    )
    assert told.code == 22
    assert told.err == (
        f"error[key-revoked]: {message}\n  hint: ask its publisher for a release that is signed by a key in force\n"
    )
    lines = told.out.splitlines()
    assert all(map(fits_or_has_a_long_path, lines))
    words = " ".join(told.out.split())
    assert f"problem installed {message.replace(host.registry.keyid, host.registry.keyid[:16] + '…')} good" in words
    assert host.rows()["installed"] == [
        ("problem", message),
        ("good", "0 of 1 plugin with signatures that count; `spm verify` reads all files"),
    ]


def test_a_store_that_was_never_used_is_no_problem(host: Host) -> None:
    told = host("doctor")

    assert (told.code, told.err) == (0, "")
    assert host.rows()["trust"] == [
        ("note", "nothing learnt yet: the first install or `spm trust init` fetches it"),
    ]


def test_a_store_that_has_forgotten_its_trust_is_a_problem(host: Host) -> None:
    host("install", "beta")
    for path in sorted((host.root / "trust").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()

    told = host("doctor")

    assert told.code == 3
    assert told.err == (
        f"error[unknown:revocations]: {host.root}/trust is empty, so that nothing says which keys were revoked\n"
        "  hint: `spm trust init` learns it from the registry\n"
    )


def test_a_doctor_files_a_wrong_clock_under_the_clock(host: Host) -> None:
    index = host.registry.index
    index.now += timedelta(days=2)
    index.publish_all()
    (host.root / "trust").mkdir(mode=0o755)
    (host.root / "trust" / "000001.json").write_bytes(index.seen_by(None, now=index.now).to_bytes())

    told = host("doctor", "--json")

    assert told.code == 23
    about = [point["about"] for point in told.document["points"] if point["status"] == "problem"]
    assert about == ["clock"]
    assert len([point for point in told.document["points"] if point["about"] == "clock"]) == 1


def test_a_warning_stands_below_its_row_and_no_line_is_longer_than_it_may_be(host: Host) -> None:
    host("install", "beta")

    abouts = [point["about"] for point in host("doctor", "--json").document["points"]]
    lines = host("doctor").out.splitlines()

    assert abouts == [
        "clock", "loader.conf", "store", "registry", "root", "root", "index", "keyring", "ext key",
        "installed", "sandbox",
    ]  # fmt: skip
    assert all(map(fits_or_has_a_long_path, lines))


@pytest.mark.parametrize(
    ("name", "about", "code"), [("loader.conf", "loader.conf", 26), ("trust", "store", 26), ("plugins", "store", 26)]
)
def test_a_doctor_tells_what_others_may_change(host: Host, name: str, about: str, code: int) -> None:
    host("install", "beta")
    (host.root / name).chmod(0o777)

    told = host("doctor")

    assert told.code == code
    assert [status for status, _ in host.rows()[about]] == ["problem"]


def test_a_doctor_tells_of_an_expired_root_and_of_an_old_index(host: Host) -> None:
    index = host.registry.index
    index.now -= timedelta(days=40)
    index.lifetimes["root"] = timedelta(days=39)
    index.publish_root()
    index.publish_all()
    state = index.seen_by(None, now=index.now)
    (host.root / "trust").mkdir(mode=0o755)
    (host.root / "trust" / "000001.json").write_bytes(state.to_bytes())

    told = host("doctor")

    assert told.code == 23
    assert told.err.startswith("error[root-expired]: the root of `team.example` expired at ")
    status, words = host.rows()["index"][0]
    assert status == "warning"
    assert words.endswith("; 40 days old, and past its end: the next install needs a newer one")


def test_a_doctor_tells_that_no_sandbox_can_be_made(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    from runtime.sandbox import bwrap

    def find(search_path: str) -> None:
        raise LayerMissing(f"no `bwrap` is in {search_path}", reason="layer-missing:L2")

    host("install", "beta")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(bwrap, "find", find)

    told = host("doctor")

    assert (told.code, told.err) == (40, "error[layer-missing:L2]: no `bwrap` is in /nowhere\n")


def test_an_install_of_something_else_warns_of_what_is_refused_now(host: Host) -> None:
    host("install", "beta")
    digest = host.registry.shards["beta"].releases[0].variants[0].manifest_sha256
    host.registry.revoke_manifest(digest)
    host.registry.publish("gamma")

    told = host("install", "gamma")

    assert (told.code, told.out) == (0, "installed  gamma 1.0.0 (ext)\n")
    assert told.err == (
        f"warning[artifact-revoked]: what is installed runs no more: `beta` 1.0.0 is refused: the manifest "
        f"sha256:{digest} was revoked by the registry's root holders or in loader.conf\n"
        "  remedy: `spm install beta` looks for a release that is trusted, `spm uninstall beta` removes it\n"
    )
