"""`spm-registry backup`: a copy made while the registry serves and takes publishes is one that can be served."""

import json
import os
import re
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from keys.keyring import LoaderConf
from keys.verified import Expected, FetchedManifest, verify_manifest
from manifests.index import Shard
from registry.cli import main
from registry.services import tokens
from tests.registry.served import ask, first_line, start, stop
from tests.registry.team import FILES, Clock, Team, digest, join_team, manifest_of, problem
from tests.registry.test_crash import release

SHA = digest(FILES["weights.bin"])


@contextmanager
def _served(root: Path) -> Iterator[str]:
    process = start(root, "--bind", "127.0.0.1:0", "--json")
    yield json.loads(first_line(process))["url"]
    assert stop(process) == (0, "")


def _back_up(root: Path, folder: Path) -> dict[str, object]:
    words = [sys.executable, "-m", "registry.cli", "backup", str(folder), "--root", str(root), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    value = json.loads(done.stdout)
    assert isinstance(value, dict)
    return value


def _read_whole(url: str, conf: LoaderConf) -> int:
    """Read, verify and digest every release that a registry lists; return how many there are."""
    answer = ask(url, "GET", "/v1/index/audio-encoder.json")
    if answer.status == 404:
        return 0
    shard = Shard.from_bytes(answer.data)
    for entry in shard.releases:
        (variant,) = entry.variants
        path = f"/v1/manifests/{variant.manifest_sha256}"
        signatures = {"manifest.jws": ask(url, "GET", f"{path}/manifest.jws").data}
        fetched = FetchedManifest(data=ask(url, "GET", path).data, signatures=signatures)
        expected = Expected(
            registry="team.local",
            name=shard.name,
            version=entry.version,
            manifest_sha256=variant.manifest_sha256,
            variant_tag=None,
            type=entry.type,
        )
        for file in verify_manifest(fetched, conf.keyring, expected).manifest.files:
            assert digest(ask(url, "GET", f"/v1/blobs/{file.sha256}").data) == file.sha256
    return len(shard.releases)


@pytest.mark.e2e
def test_a_backup_made_during_publishes_is_served_whole(team: Team, tmp_path: Path) -> None:
    ended = threading.Event()
    answered: list[int] = []

    def publish() -> None:
        # The test's application and the served one write to the same folder, as two workers do.
        for number in range(400):
            if ended.is_set():
                return
            manifest, files = release(number)
            assert team.publish(team.admin, manifest, files=files).status_code == 201
            answered.append(number)

    with _served(team.root) as url:
        publisher = threading.Thread(target=publish)
        publisher.start()
        while len(answered) < 3:
            time.sleep(0.01)
        before = len(answered)
        made = _back_up(team.root, tmp_path / "backup")
        after = len(answered)
        ended.set()
        publisher.join()
        assert _read_whole(url, LoaderConf.read(team.site.loader_conf)) == len(answered)

    with _served(tmp_path / "backup") as url:
        held = _read_whole(url, LoaderConf.read(tmp_path / "backup" / "loader.conf"))

    assert before <= held <= after + 1
    assert after > before
    assert (made["releases"], made["serial"]) == (held, held)
    assert (made["blobs"], made["linked"], made["blob_bytes"]) == (held * 4, held * 4, held * 80_000)


@pytest.mark.e2e
def test_a_backup_takes_publishes_and_knows_its_tokens(team: Team, tmp_path: Path) -> None:
    team.publish(team.admin, manifest_of())
    lost = team.token("lost")
    with team.site.database.writing() as records:
        row = next(row for row in records.tokens() if row.label == "lost")
        tokens.revoke(records, row.id, actor="test", now=team.clock())
    waiting = team.submit(team.admin, manifest_of(version="1.1.0"))
    _back_up(team.root, tmp_path / "backup")

    copy = join_team(tmp_path / "backup", team.ext.directory, team.admin, Clock())

    assert problem(copy.ask("GET", "/v1/whoami", lost))["detail"] == "the token `lost` was revoked on 2027-01-15"
    assert copy.publish(copy.admin, manifest_of(version="1.1.0")).status_code == 201
    assert waiting.status_code == 201
    copy.site.database.close()


def test_a_backup_lets_nobody_else_read_what_is_private(team: Team, tmp_path: Path) -> None:
    team.publish(team.admin, manifest_of())

    _back_up(team.root, tmp_path / "backup")

    modes = {
        path.name: oct(stat.S_IMODE(path.stat().st_mode))
        for path in [tmp_path / "backup", *(tmp_path / "backup").iterdir()]
    }
    assert modes == {
        "backup": "0o700",
        "registry.db": "0o600",
        "secret": "0o600",
        "online.key": "0o600",
        "blobs": "0o700",
        "uploads": "0o700",
        "loader.conf": "0o644",
    }


def test_a_person_is_told_what_was_backed_up(capsys: pytest.CaptureFixture[str], team: Team, tmp_path: Path) -> None:
    team.publish(team.admin, manifest_of())

    code = main(["backup", str(tmp_path / "backup"), "--root", str(team.root)])

    captured = capsys.readouterr()
    size = sum(map(len, FILES.values()))
    assert (code, captured.out) == (0, "")
    assert captured.err == (
        f"Backed up {team.root} to {tmp_path}/backup: 1 release, 2 blobs with {size} bytes\n"
        f"2 of the blobs are hard links: copy {tmp_path}/backup to another disk as well.\n"
        f"`spm-registry serve --root {tmp_path}/backup` serves it as it is.\n"
    )


def test_a_folder_that_holds_something_is_left_alone(
    capsys: pytest.CaptureFixture[str], team: Team, tmp_path: Path
) -> None:
    folder = tmp_path / "backup"
    folder.mkdir()
    (folder / "mine").write_text("mine")

    code = main(["backup", str(folder), "--root", str(team.root)])

    assert code == 2
    assert capsys.readouterr().err == (
        f"error[usage]: {folder} is not empty; nothing was written\n"
        "  hint: name a folder that does not exist yet, such as one for each day\n"
    )
    assert [path.name for path in folder.iterdir()] == ["mine"]


def _damage_removed(path: Path) -> None:
    path.unlink()


def _damage_cut(path: Path) -> None:
    os.truncate(path, 5)


@pytest.mark.parametrize(
    ("damage", "code", "message"),
    [
        (_damage_removed, "file-set", "is missing, and a published release has it"),
        (_damage_cut, "size", "has 5 bytes, and a published release has it with 2048"),
    ],
)
def test_a_registry_that_has_lost_a_blob_is_not_backed_up_as_if_it_were_whole(
    capsys: pytest.CaptureFixture[str], team: Team, tmp_path: Path, damage: object, code: str, message: str
) -> None:
    team.publish(team.admin, manifest_of())
    path = team.site.blobs.path(SHA)
    assert callable(damage)
    damage(path)

    exit_code = main(["backup", str(tmp_path / "backup"), "--root", str(team.root)])

    assert exit_code == 25
    assert capsys.readouterr().err == (f"error[{code}]: {path} {message}\n  hint: put it back from an older backup\n")
    assert list((tmp_path / "backup").iterdir()) == []


@pytest.fixture
def other_disk() -> Iterator[Path]:
    """Give a folder of another file system, where no hard link reaches."""
    folder = Path("/dev/shm") / f"spm-backup-{os.getpid()}"
    if not folder.parent.is_dir() or folder.parent.stat().st_dev == Path("/tmp").stat().st_dev:
        pytest.skip("this machine has no second file system")
    yield folder
    subprocess.run(["rm", "-r", str(folder)], check=True)


def test_a_backup_on_another_disk_is_copied(team: Team, other_disk: Path) -> None:
    team.publish(team.admin, manifest_of())

    made = _back_up(team.root, other_disk)

    copied = other_disk / "blobs" / "sha256" / SHA[:2] / SHA
    assert (made["blobs"], made["linked"]) == (2, 0)
    assert copied.read_bytes() == FILES["weights.bin"]
    assert stat.S_IMODE(copied.stat().st_mode) == 0o600


def test_a_blob_that_changed_on_the_disk_is_not_copied(
    capsys: pytest.CaptureFixture[str], team: Team, other_disk: Path
) -> None:
    team.publish(team.admin, manifest_of())
    path = team.site.blobs.path(SHA)
    path.write_bytes(bytes(2048))

    code = main(["backup", str(other_disk), "--root", str(team.root)])

    assert code == 25
    assert capsys.readouterr().err == (
        f"error[digest]: {path} has sha256:{digest(bytes(2048))}\n"
        "  hint: the registry's disk has changed it: put it back from an older backup\n"
    )
    assert list(other_disk.iterdir()) == []


def test_a_backup_that_was_cut_short_cannot_be_served(
    capsys: pytest.CaptureFixture[str], team: Team, tmp_path: Path
) -> None:
    script = (
        "import os, sys; from registry.storage import backup\n"
        "def die(*_): os._exit(9)\n"
        "backup.write_public_file = die\n"
        "from registry.cli import main; main(sys.argv[1:])"
    )
    words = [sys.executable, "-c", script, "backup", str(tmp_path / "backup"), "--root", str(team.root)]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 9

    code = main(["serve", "--root", str(tmp_path / "backup")])

    assert code == 2
    assert re.match(
        r"error\[usage\]: .* is not a whole registry: `secret`, `online.key`, `loader.conf` is missing\n",
        capsys.readouterr().err,
    )


def test_a_full_disk_is_named(team: Team, tmp_path: Path) -> None:
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000));"
        "from registry.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", script, "backup", str(tmp_path / "backup"), "--root", str(team.root)]

    done = subprocess.run(words, capture_output=True, text=True, check=False)

    assert done.returncode == 41
    assert done.stderr == (
        f"error[limit:disk]: the database cannot be copied to {tmp_path}/backup/registry.db: disk I/O error\n"
        "  hint: look at the room on both disks, then run the command again\n"
    )
    assert list((tmp_path / "backup").iterdir()) == []
