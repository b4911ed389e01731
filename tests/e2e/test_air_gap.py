"""Plugins by a file to a machine whose registry is a closed port: the real commands, and not one connection."""

import os
import shutil
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from keys.trust_file import trust_file
from keys.trust_state import MOMENT
from tests.e2e.commands import SPM, Answer, Client, run
from tests.e2e.snapshots import snapshot, unchanged
from tests.e2e.team import Team
from tests.spm_client.workflows.bundles import Pair, registry

pytestmark = pytest.mark.e2e

CLOSED = "http://127.0.0.1:9"
# A socket that is only made is no connection: urllib3, which python-tuf imports, tries IPv6 out by binding one.
AUDIT = """
import sys
WATCHED = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"}
def watch(event, args):
    if event in WATCHED or event.startswith(("urllib.", "http.client.")):
        raise SystemExit(f"the network was touched: {event}")
sys.addaudithook(watch)
from spm_client.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def away(team: Team, tmp_path: Path) -> Client:
    """Give a machine that trusts the team and cannot reach it."""
    return team.client(tmp_path / "away", CLOSED)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plugins.bundle"


def audited(client: Client, *words: str | Path) -> Answer:
    """Run `spm` in a process that ends where it looks up a name, connects or sends."""
    return run([sys.executable, "-c", AUDIT, *words, "--json"], client.environment)


def test_plugins_arrive_on_a_machine_without_a_network(team: Team, client: Client, away: Client, file: Path) -> None:
    exported = client.spm("bundle", "export", "alpha", "gamma", "heavy", "--output", file).ok().document
    with unchanged(away.home):
        verified = away.spm("bundle", "verify", file).ok().document
    away.spm("bundle", "import", file).ok()

    assert [plugin["name"] for plugin in exported["plugins"]] == ["alpha", "beta", "gamma", "heavy"]
    assert exported.pop("output") == verified.pop("bundle") == str(file)
    assert exported == verified
    assert verified["asked"] == ["alpha", "gamma", "heavy"]
    assert {plugin["name"]: plugin["keyids"] for plugin in verified["plugins"]} == {
        "alpha": [team.keyids["ext"]],
        "beta": [team.keyids["ext"]],
        "gamma": [team.keyids["core"]],
        "heavy": [team.keyids["ext"]],
    }
    assert away.installed() == {"alpha": "2.0.0", "beta": "1.1.0", "gamma": "1.0.0", "heavy": "1.0.0"}
    away.require_sound()


def test_nothing_connects_looks_up_a_name_or_sends(client: Client, away: Client, file: Path) -> None:
    client.spm("bundle", "export", "alpha", "--output", file).ok()

    control = audited(away, "trust", "update")
    verified = audited(away, "bundle", "verify", file)
    taken = audited(away, "bundle", "import", file)

    assert "the network was touched: socket." in control.err
    for answer in (verified, taken):
        assert (answer.code, answer.err) == (0, "")
    assert away.installed() == {"alpha": "2.0.0", "beta": "1.1.0"}


def test_verify_tells_a_person_what_is_in_it(team: Team, client: Client, away: Client, file: Path) -> None:
    client.spm("bundle", "export", "alpha==1.0.0", "--output", file).ok()

    lines = away.told("bundle", "verify", file).out.splitlines()

    assert lines[0].startswith("registry: team.example   size: ")
    assert lines[2] == "asked:    alpha==1.0.0"
    key = f"{team.keyids['ext'][:16]}…"
    assert lines[-2:] == [
        "",
        f"sound: all in it is proven; `spm bundle import {file} --dry-run` shows what it would install",
    ]
    assert [line.split() for line in lines[4:-2]] == [
        ["PLUGIN", "RELEASE", "CLASS", "SIZE", "PUBLISHER", "SIGNED", "BY", "NOTE"],
        ["alpha", "1.0.0", "ext", *lines[5].split()[3:5], "team", key, "2.0.0", "is", "listed", "too"],
        ["beta", "1.1.0", "ext", *lines[6].split()[3:5], "team", key, "-"],
    ]


def test_a_target_file_decides_what_is_exported(client: Client, away: Client, file: Path, tmp_path: Path) -> None:
    target = tmp_path / "cluster.json"
    target.write_text(client.told("target", "probe").out)

    client.spm("bundle", "export", "alpha", "--output", file, "--target", target).ok()

    away.spm("bundle", "import", file, "--target", target).ok()


def test_a_changed_byte_is_refused_and_the_honest_file_then_works(client: Client, away: Client, file: Path) -> None:
    client.spm("bundle", "export", "heavy", "--output", file).ok()
    honest = file.read_bytes()
    file.write_bytes(honest[:-1] + bytes([honest[-1] ^ 1]))

    for action in ("verify", "import"):
        with unchanged(away.home):
            answer = away.spm("bundle", action, file)
        assert (answer.code, answer.document["error"]["reason"]) == (25, "digest")
    file.write_bytes(honest)
    away.spm("bundle", "import", file).ok()


def test_without_the_file_the_same_machine_installs_nothing(away: Client) -> None:
    with unchanged(away.home):
        assert away.spm("install", "alpha").document["error"]["reason"] == "unreachable"


def test_a_file_that_is_there_is_not_replaced_unasked(client: Client, file: Path) -> None:
    file.write_text("mine")

    client.spm("bundle", "export", "beta", "--output", file).refused(
        2, "usage", f"`{file}` is there already", "name another file, or `--force` replaces it"
    )
    assert file.read_text() == "mine"
    client.spm("bundle", "export", "beta", "--output", file, "--force").ok()

    assert file.read_bytes().startswith(b"spm bundle 1\n")


def test_a_refused_export_leaves_nothing_behind(client: Client, file: Path) -> None:
    with unchanged(client.home, file.parent):
        assert client.spm("bundle", "export", "nowhere", "--output", file).code == 10
        client.spm("bundle", "export", "beta", "--output", file.parent / "none" / "x").refused(
            2, "usage", f"`{file.parent}/none/x` cannot be written: No such file or directory"
        )


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """Give the words that run a command where the folder `small` is a disk of 1 MiB."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("mounting a small disk needs root and unshare")
    disk = tmp_path / "small"
    disk.mkdir()
    mounted = f"mount -t tmpfs -o size=1m small '{disk}' && "
    words = ["unshare", "--mount", "sh", "-c"]
    probe = subprocess.run([*words, mounted + "true"], capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {probe.stderr.strip()}")
    return [*words, mounted + '"$@"; code=$?; ls -A ' + f"'{disk}' >&2; exit $code", "sh"]


def test_a_full_disk_leaves_no_half_a_bundle(client: Client, small: list[str], tmp_path: Path) -> None:
    place = tmp_path / "small" / "heavy.bundle"
    before = snapshot(client.home)

    answer = run([*small, SPM, "bundle", "export", "heavy", "--output", place, "--json"], client.environment)

    answer.refused(
        41,
        "limit:disk",
        f"the disk under `{place.parent}` is full; `heavy.bundle` was not written",
        "free some space there and run the command again",
    )
    assert snapshot(client.home) == before


def test_a_file_size_that_the_disk_does_not_take_is_told(client: Client, file: Path) -> None:
    limited = ["sh", "-c", 'ulimit -f 2000; exec "$@"', "sh", SPM]

    answer = run([*limited, "bundle", "export", "heavy", "--output", str(file), "--json"], client.environment)

    answer.refused(
        41,
        "limit:file-size",
        f"the disk under `{file.parent}` holds no file as big as `plugins.bundle` would be",
        "write to a disk with another file system, as FAT ends at 4 GiB",
    )

    assert not file.exists()


# What a registry of another moment, key or id exported


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Give a simulated registry that was signed three days ago, and a machine that reached it then."""
    made = Pair(tmp_path / "pair", registry(timedelta(days=3)))
    made.registry.publish("beta")
    made.registry.publish("alpha", requires=["beta"])
    return made


def carried(pair: Pair, *specs: str, name: str = "plugins") -> Path:
    """Export at the moment at which the registry was signed."""
    path = pair.folder / f"{name}.bundle"
    pair.there.export(path, *specs, now=pair.registry.index.now)
    return path


def machine(pair: Pair, home: Path, more: str = "") -> Client:
    client = Client(home)
    client.trust(pair.registry.loader_conf(CLOSED, more))
    return client


def test_an_expired_bundle_is_let_in_only_where_loader_conf_says_so(pair: Pair, tmp_path: Path) -> None:
    file, client = carried(pair, "alpha"), machine(pair, tmp_path / "away")
    expired = pair.registry.index.now + timedelta(days=1)

    for action in ("verify", "import"):
        with unchanged(client.home):
            answer = client.spm("bundle", action, file)
        told = answer.document["error"]["context"]["now"]
        answer.refused(
            23,
            "index-expired",
            f"the bundle's `timestamp` expired at {expired:{MOMENT}}, and this host's clock says {told}: "
            "either it was long on its way, or the clock is wrong",
            f"export it anew; or write `[bundle]` with `max_age_days = 3` into {client.conf}, "
            "which lets bundles in that long after their expiry",
        )
    client.trust(pair.registry.loader_conf(CLOSED, "[bundle]\nmax_age_days = 3\n"))
    client.spm("bundle", "verify", file).ok()
    client.spm("bundle", "import", file).ok()

    assert client.installed() == {"alpha": "1.0.0", "beta": "1.0.0"}
    client.require_sound()


GRACE = "[bundle]\nmax_age_days = 30\n"


def test_an_older_bundle_after_a_newer_one_is_a_rollback(pair: Pair, tmp_path: Path) -> None:
    old, client = carried(pair, "beta"), machine(pair, tmp_path / "away", GRACE)
    pair.registry.publish("beta", "1.1.0")
    client.spm("bundle", "import", carried(pair, "beta", name="new")).ok()

    for action in ("verify", "import"):
        with unchanged(client.home):
            answer = client.spm("bundle", action, old)
        answer.refused(
            24,
            "rollback",
            "the registry's index goes back: timestamp 4 was served, and this host has seen timestamp 5",
            "somebody serves an old state of the registry, or it was restored from an old backup; "
            "tell the registry's administrator; nothing was changed",
        )


def test_a_revocation_by_a_trust_file_counts_against_a_bundle(pair: Pair, tmp_path: Path) -> None:
    file, client = carried(pair, "beta"), machine(pair, tmp_path / "away", GRACE)
    pair.registry.revoke_key()
    trust = tmp_path / "trust.json"
    trust.write_bytes(trust_file(pair.registry.index.state))
    client.spm("trust", "import", trust).ok()

    for action in ("verify", "import"):
        with unchanged(client.home):
            answer = client.spm("bundle", action, file)
        answer.refused(
            22,
            "key-revoked",
            "`beta` 1.0.0 is refused: the manifest, made at 2026-01-31T12:00:00Z, is signed by the key "
            f"{pair.registry.keyid}, which is revoked as compromised: nothing that it ever signed counts",
            "ask its publisher for a release that is signed by a key in force",
        )


def test_the_bundle_of_another_registry_is_a_mix(pair: Pair, team: Team, tmp_path: Path) -> None:
    file, client = carried(pair, "beta"), team.client(tmp_path / "away", CLOSED)

    for action in ("verify", "import"):
        with unchanged(client.home):
            answer = client.spm("bundle", action, file)
        assert (answer.code, answer.document["error"]["reason"]) == (24, "mix")


def test_an_older_release_that_the_file_asks_for_is_told(client: Client, away: Client, file: Path) -> None:
    client.spm("bundle", "export", "alpha==1.0.0", "--output", file).ok()

    away.spm("bundle", "import", file, "--affinity", "cpu").ok(
        "warning[older]: the bundle brings `alpha` 1.0.0, while its index lists 2.0.0 too\n"
        "  what was asked for at its export: `alpha==1.0.0`\n"
    )

    bound = {plugin["name"]: plugin.get("bindings") for plugin in away.spm("list").ok().document["plugins"]}
    assert bound == {"alpha": {"affinity": ["cpu"]}, "beta": None}
