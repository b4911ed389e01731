"""The story: a team's registry, signed plugins, install, run on real speech, waste, refusals. Runs `demo.stage`."""

import contextlib
import hashlib
import json
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from demo import changes
from demo.stage import DemoFailed, Stage, environment_of
from demo.tampering import flip_a_byte

HERE = Path(__file__).resolve().parent
EXAMPLES = "../manifests/examples"
SERVE_SECONDS = 30
TOKEN = re.compile(r"\bspm_\w{20,}")


def main() -> int:
    """Run the demo in `.demo` and return 0 if everything went as told."""
    folder = HERE.parent / ".demo"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "store").mkdir()
    (folder / "store").chmod(0o755)
    stage = Stage(folder, environment_of(folder))
    try:
        _story(stage)
    except DemoFailed as error:
        print(f"\nThe demo stopped: {error}", file=sys.stderr)
        return 1
    return 0


def _story(stage: Stage) -> None:
    port = _free_port()
    _registry(stage, port)
    with _served(stage, port):
        _keys(stage)
        _publish(stage)
        _install(stage)
        _run_on_speech(stage)
        _waste(stage)
        _refusals(stage)
        changes.play(stage, port)
        _revocation(stage)
        _crash(stage)
    _put_back(stage, port)
    _offline(stage)
    stage.chapter("Summary", "What the real commands did just now, on this machine. Each was held to its exit code.")
    stage.summary()


def _registry(stage: Stage, port: int) -> None:
    stage.chapter(
        "1. A team's registry",
        "One command makes a private registry. It prints the administrator's token once, and the loader.conf to hand "
        "to clients. Trust begins there: with the root that it pins and the keys that it names.",
    )
    made = stage.run(f"spm-registry init --root registry --id team.demo --url http://127.0.0.1:{port}", secret=TOKEN)
    (stage.folder / "token").write_text(TOKEN.findall(made)[0])
    print("Clients pin the root of trust, which keys that stay offline sign. (A team would take two of three.)")
    print("The registry's own key signs its index day by day; it can make no plugin loadable.\n")
    stage.run("spm keys new --role root --name root --no-passphrase")
    stage.run("spm-registry root init config/spm/keys/root.pub --sign config/spm/keys/root.key --root registry")


@contextlib.contextmanager
def _served(stage: Stage, port: int, root: str = "registry") -> Iterator[None]:
    command = ["spm-registry", "serve", "--root", root, "--bind", f"127.0.0.1:{port}"]
    print(f"$ {' '.join(command)} &")
    with (stage.folder / "registry.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=stage.folder, env=stage.environment, stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/healthz", server)
        print(f"  serving on http://127.0.0.1:{port}")
        yield
    finally:
        server.terminate()
        server.wait(timeout=30)


def _wait_for(url: str, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + SERVE_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    raise DemoFailed(f"the registry did not come up at {url}; see .demo/registry.log")


def _keys(stage: Stage) -> None:
    stage.chapter(
        "2. Keys",
        "Core plugins start with the host and are signed with ASN.1 ECDSA; ext plugins load on demand and are signed "
        "as JWS. The administrator pins the public keys, for ext with the names that each may sign. (Passphrases are "
        "left out here; `spm keys new` asks for one.)",
    )
    stage.run("spm keys new --role core --name platform --no-passphrase")
    stage.run("spm keys new --role ext --name audio-team --no-passphrase")
    stage.run("spm keys new --role ext --name stranger --no-passphrase")
    stage.run("spm-registry key add config/spm/keys/platform.pub --root registry")
    stage.run("spm-registry key add config/spm/keys/audio-team.pub --root registry --names audio-* log-mel legacy-*")
    stage.run("spm-registry loader-conf --root registry --output store/loader.conf")
    stage.run("spm login", given=(stage.folder / "token").read_text())


def _publish(stage: Stage) -> None:
    stage.chapter(
        "3. Pack, sign, publish",
        "A manifest.yaml is compiled once to canonical JSON with the digest of every file. audio-encoder takes its "
        "pretrained weights out of a pinned package; fused-gelu compiles its C++ operator, now, for this machine.",
    )
    for source in (
        "log-mel",
        "audio-encoder/older/1.4.0",
        "audio-encoder/older/2.0.4",
        "audio-encoder",
        "legacy-audio-encoder",
    ):
        packed = _pack(stage, source, "audio-team")
        stage.json(f"spm sign {packed} --key audio-team")
        stage.run(f"spm publish {packed}")
    packed = _pack(stage, "fused-gelu", "platform")
    stage.run(f"spm sign {packed} --key platform")
    stage.run(f"spm publish {packed}")
    stage.done("publish 6 releases", "5 ext (JWS), 1 core (DER ECDSA)")


def _pack(stage: Stage, source: str, publisher: str) -> Path:
    """Pack one of the examples and return the new folder."""
    before = set((stage.folder / "dist").glob("*"))
    stage.run(f"spm pack {EXAMPLES}/{source} --publisher {publisher}")
    (packed,) = set((stage.folder / "dist").iterdir()) - before
    return packed.relative_to(stage.folder)


def _install(stage: Stage) -> None:
    stage.chapter(
        "4. Install and verify",
        "The newest release that fits is taken, with what it requires. Signatures are checked against loader.conf "
        "before a manifest is read, every file against its digest.",
    )
    stage.run("spm info audio-encoder")
    stage.run("spm install audio-encoder fused-gelu")
    stage.run("spm list")
    stage.run("spm verify --strict")
    stage.done("install audio-encoder", "2.0.5 with log-mel 1.2.0")


def _run_on_speech(stage: Stage) -> None:
    stage.chapter(
        "5. Run on real input",
        "A WAV of synthesised speech between silences goes through log-mel and audio-encoder, each in its own worker "
        "under bubblewrap: no network, read-only view, no privileges, cleared environment, tensors by shared memory.",
    )
    stage.run("python ../demo/speech.py speech.wav --json speech.json", lines=1)
    stage.run("spm run log-mel --input speech.wav")
    stage.run("spm run audio-encoder --input speech.wav --output encoded.json")
    placed = json.loads((stage.folder / "speech.json").read_text())
    found = json.loads((stage.folder / "encoded.json").read_text())["speech"][0]
    inside, outside = _speech_found(placed, found)
    if inside < 0.8 or outside > 0.2:
        raise DemoFailed(
            f"speech was found with {inside:.2f} where there is some and {outside:.2f} where there is none"
        )
    stage.done("find speech in a WAV", f"probability {inside:.2f} in speech, {outside:.2f} in silence")
    print("The C++ operator against torch's own result, through the Python API:\n")
    stage.run("python ../demo/gelu_session.py store")
    stage.done("fused-gelu against torch", "within torch's own tolerances for float32")


def _speech_found(placed: dict[str, object], found: list[float]) -> tuple[float, float]:
    """Return the mean probability where speech was placed and where silence was; draw both. Edges count for neither."""
    spans = placed["speech"]
    assert isinstance(spans, list)
    window = 512
    truth = [_overlap(index * window, window, spans) for index in range(len(found))]
    inside = [value for value, share in zip(found, truth, strict=True) if share == 1.0]
    edges = {near for index, share in enumerate(truth) if share for near in range(index - 8, index + 9)}
    outside = [value for index, value in enumerate(found) if index not in edges]
    columns = range(0, len(found), max(1, len(found) // 90))
    print("  placed " + "".join("#" if truth[index] > 0.5 else "." for index in columns))
    print("  found  " + "".join("#" if found[index] > 0.5 else "." for index in columns) + "\n")
    return sum(inside) / len(inside), sum(outside) / len(outside)


def _overlap(start: int, length: int, spans: list[list[int]]) -> float:
    return sum(max(0, min(start + length, end) - max(start, begin)) for begin, end in spans) / length


def _waste(stage: Stage) -> None:
    stage.chapter(
        "6. Hidden waste",
        "legacy-audio-encoder trips all three traps: bound to a device that is not there, open to any runtime, never "
        "batched. Its publisher had to write down why before the registry took it; whoever installs it is told.",
    )
    stage.run("spm install legacy-audio-encoder")
    stage.refuse(
        "waste under --strict",
        "spm verify legacy-audio-encoder --strict",
        exit_code=11,
        reason="affinity-unbound",
    )
    stage.run("spm target probe --output this-host.json")
    _write_cluster(stage.folder / "this-host.json", stage.folder / "cluster.json")
    print("The same question for a host with two GPUs and an NPU, asked from here:\n")
    stage.refuse(
        "waste on another target",
        "spm verify --strict --target cluster.json",
        exit_code=11,
        reason="affinity-unbound",
    )
    stage.run("spm uninstall legacy-audio-encoder")


def _write_cluster(host: Path, cluster: Path) -> None:
    target = json.loads(host.read_text())
    target["devices"] += [
        {"id": "cuda:0", "name": "A100", "sm": "sm_80", "memory_bytes": 80 << 30},
        {"id": "cuda:1", "name": "A100", "sm": "sm_80", "memory_bytes": 80 << 30},
        {"id": "npu:0", "name": "an NPU"},
    ]
    cluster.write_text(json.dumps(target))


def _refusals(stage: Stage) -> None:
    stage.chapter(
        "7. Refusals",
        "Nothing lesser is taken silently. Each refusal says what failed, why, and what to do; the store is compared "
        "before and after, and nothing in it changed.",
    )
    stage.refuse("a version that is not there", "spm install audio-encoder==9.9.9", exit_code=10, reason="not-found")
    stage.refuse(
        "a device that is not there", "spm install audio-encoder --affinity=npu0", exit_code=12, reason="device"
    )
    _unsigned_and_strangers(stage)
    _tampering(stage)


def _unsigned_and_strangers(stage: Stage) -> None:
    stage.json(f"spm pack {EXAMPLES}/log-mel --publisher audio-team --out unsigned")
    stage.refuse("an unsigned release", "spm publish unsigned/log-mel-1.2.0", exit_code=20, reason="unsigned")
    stage.json(f"spm pack {EXAMPLES}/log-mel --publisher stranger --out strange")
    stage.json("spm sign strange/log-mel-1.2.0 --key stranger")
    stage.refuse("a key that nobody pinned", "spm publish strange/log-mel-1.2.0", exit_code=21, reason="key-unknown")
    stage.refuse(
        "a core key on an ext plugin",
        "spm sign unsigned/log-mel-1.2.0 --key platform",
        exit_code=21,
        reason="key-role",
    )


def _tampering(stage: Stage) -> None:
    print("Somebody flips one byte of a blob in the registry's own storage, and a fresh host installs:\n")
    blob = _blob_of(stage, "log_mel.py")
    stage.json("spm uninstall audio-encoder")
    shutil.rmtree(stage.folder / "store" / "blobs")
    with flip_a_byte(blob):
        stage.refuse("one byte changed in the registry", "spm install log-mel", exit_code=25, reason="digest")
    stage.run("spm install audio-encoder")
    tree = stage.folder / "store" / "plugins" / "log-mel" / "1.2.0"
    print("Somebody drops a file beside an installed plugin, to be imported in its place:\n")
    (tree / "torch.py").write_text("import os\n")
    stage.refuse("a file too many in the tree", "spm verify log-mel", exit_code=25, reason="file-set")
    stage.refuse("running such a plugin", "spm run log-mel -i speech.wav", exit_code=25, reason="file-set")
    (tree / "torch.py").unlink()
    stage.run("spm verify")


def _blob_of(stage: Stage, path: str) -> Path:
    manifest = json.loads((stage.folder / "dist" / "log-mel-1.2.0" / "manifest.json").read_text())
    digest = next(entry["sha256"] for entry in manifest["files"] if entry["path"] == path)
    return next((stage.folder / "registry").rglob(digest))


def _revocation(stage: Stage) -> None:
    stage.chapter(
        "9. Taking trust back",
        "The holder of the root key revokes a release for every host. It is refused where it would be installed, and, "
        "once a host has heard of it, where it would be loaded, also without a network. The registry is backed up "
        "before; the next chapter but one puts that old state back.",
    )
    stage.run("spm-registry backup old-registry --root registry")
    stage.run("spm install legacy-audio-encoder", lines=2)
    manifest = (stage.folder / "dist" / "legacy-audio-encoder-0.9.0" / "manifest.json").read_bytes()
    digest = hashlib.sha256(manifest).hexdigest()
    stage.run(f"spm-registry keyring revoke-manifest {digest} --sign config/spm/keys/root.key --root registry")
    stage.run("spm trust update")
    stage.refuse(
        "loading a revoked release",
        "spm run legacy-audio-encoder --input speech.wav",
        exit_code=22,
        reason="artifact-revoked",
    )
    stage.run("spm uninstall legacy-audio-encoder")
    stage.refuse(
        "installing a revoked release", "spm install legacy-audio-encoder", exit_code=22, reason="artifact-revoked"
    )
    stage.run("spm bundle export log-mel --output log-mel.bundle")
    stage.run("spm doctor")


def _crash(stage: Stage) -> None:
    stage.chapter(
        "10. A worker dies",
        "The worker is killed from outside in the middle of its life. The host lives on with a typed error, and the "
        "next call has a new worker.",
    )
    stage.run("python ../demo/crash_session.py store")
    stage.done("survive a killed worker", "WorkerDied, then served again")


def _put_back(stage: Stage, port: int) -> None:
    stage.chapter(
        "11. An old registry is served",
        "Somebody with the registry's host and its online key serves the state of before the revocation. Everything in "
        "it is soundly signed; a host that has seen more does not go back.",
    )
    with _served(stage, port, "old-registry"):
        stage.refuse("an index that goes back", "spm install legacy-audio-encoder", exit_code=24, reason="rollback")


def _offline(stage: Stage) -> None:
    stage.chapter(
        "12. The registry is down",
        "What is installed still verifies and runs; what is not comes as a file with its proofs, or not at all.",
    )
    stage.refuse("install without a registry", "spm install legacy-audio-encoder", exit_code=31, reason="unreachable")
    stage.run("spm verify audio-encoder")
    island = stage.folder / "island"
    island.mkdir(mode=0o755)
    shutil.copy(stage.folder / "store" / "loader.conf", island)
    stage.run("spm bundle import log-mel.bundle --root island")
    stage.done("install over an air gap", "log-mel 1.2.0 from a bundle")
    stage.run("spm uninstall audio-encoder fused-gelu")
    stage.run("spm list")
    stage.done("uninstall", "the store is empty again")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
