"""The act on changes: a conflict, a fallback, a project, the way back, a cut download. Runs `demo.stage`."""

import contextlib
import json
import shutil
from pathlib import Path

from demo.line import Line
from demo.stage import DemoFailed, Stage, in_kib

PROJECT = "speech-finder"
CUT_AFTER = 800_000
"""Bytes: in the middle of the weights, which are 1.2 MB."""


def play(stage: Stage, registry_port: int) -> None:
    """Tell the act. What is installed before it is installed after it."""
    stage.chapter(
        "8. Changes, and the way back",
        "audio-picky 1.1.0 holds audio-encoder below 2.0.5, its 1.0.0 did not. What cannot go together is refused "
        "with the reason. To install the older one would be a fallback: it is refused with what accepts it, and "
        "recorded once it is accepted.",
    )
    _conflict_and_fallback(stage)
    _project(stage)
    _way_back(stage)
    _cut_download(stage, registry_port)


def _conflict_and_fallback(stage: Stage) -> None:
    _publish_picky(stage, "1.0.0", "^2.0")
    _publish_picky(stage, "1.1.0", "<2.0.5")
    stage.refuse(
        "two wishes that conflict",
        "spm install audio-picky==1.1.0 audio-encoder==2.0.5 --explain",
        exit_code=10,
        reason="unsatisfiable",
    )
    wish = "spm install audio-picky audio-encoder==2.0.5"
    stage.refuse("a silent downgrade", wish, exit_code=10, reason="fallback")
    stage.run(f"{wish} --accept-fallback audio-picky")
    stage.run("spm list")
    stage.run("spm uninstall audio-picky")


def _publish_picky(stage: Stage, version: str, wanted: str) -> None:
    source = stage.folder / "picky"
    (source / "plugin").mkdir(parents=True, exist_ok=True)
    (source / "plugin" / "picky.py").write_text("def factory(context):\n    return lambda x: x\n")
    (source / "manifest.yaml").write_text(
        f"name: audio-picky\nversion: {version}\ntype: ext\nsummary: Particular about audio-encoder\n"
        'license: Apache-2.0\nentry: picky:factory\nseedance_version: ">=2.0.0,<3"\n'
        f'requires: {{plugins: {{audio-encoder: "{wanted}"}}}}\ndevice_affinity: [cpu]\nbatch_policy: adaptive\n'
    )
    stage.json("spm pack picky --publisher audio-team")
    stage.json(f"spm sign dist/audio-picky-{version} --key audio-team")
    stage.json(f"spm publish dist/audio-picky-{version}")


def _project(stage: Stage) -> None:
    print(
        "A project says what it wants in spm.toml; spm.lock pins it, with digests and keys; a store follows exactly:\n"
    )
    stage.run(f"spm init {PROJECT}")
    stage.run(f"spm add audio-picky --project {PROJECT}")
    stage.run(f"spm lock --locked --project {PROJECT}")
    stage.run(f"spm sync --locked --project {PROJECT}")
    stage.run(f"spm tree --project {PROJECT}")
    stage.done("sync a project", "audio-encoder 2.0.4, for audio-picky 1.1.0")


def _way_back(stage: Stage) -> None:
    print("That took fused-gelu away and audio-encoder back. What was there before is one command away, offline:\n")
    stage.run("spm rollback")
    stage.run("spm list")
    stage.run("spm gc --dry-run")
    found = {plugin["name"]: plugin["version"] for plugin in stage.json("spm list")["plugins"]}
    if found != {"audio-encoder": "2.0.5", "fused-gelu": "1.0.0", "log-mel": "1.2.0"}:
        raise DemoFailed(f"`spm rollback` left {found}")
    stage.done("roll back", "audio-encoder 2.0.5 and fused-gelu are there again")


def _cut_download(stage: Stage, registry_port: int) -> None:
    print("A second host's line stops in the middle of the weights, and its install is killed. The next one goes on:\n")
    command = "spm install audio-encoder --root second"
    with Line(registry_port, stops_after=CUT_AFTER) as line:
        store = _second_host(stage, registry_port, line.port)
        stage.kill(
            command,
            when=lambda: _bytes_in(store) > CUT_AFTER * 3 // 4,
            after=lambda: f"{in_kib(line.carried)} had come down the line",
        )
        line.mend()
        stage.run(command)
        came = line.carried
    size = _size_of_weights(stage)
    print(f"  This time {in_kib(came)} came down the line, for weights of {in_kib(size)}.\n")
    if came > size - CUT_AFTER // 2:
        raise DemoFailed(f"the second install fetched {came} bytes, so it did not go on with what was there")
    stage.done("go on with a cut download", f"{in_kib(came)} more, for weights of {in_kib(size)}")


def _second_host(stage: Stage, registry_port: int, line_port: int) -> Path:
    """Return a new store that trusts what the first one does, and reaches the registry by the line."""
    store = stage.folder / "second"
    store.mkdir(mode=0o755)
    conf = Path(shutil.copy(stage.folder / "store" / "loader.conf", store))
    conf.write_text(conf.read_text().replace(f"127.0.0.1:{registry_port}", f"127.0.0.1:{line_port}"))
    return store


def _bytes_in(store: Path) -> int:
    # A running command may rename or remove a file between the listing and the question.
    sizes = 0
    for path in store.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            sizes += path.lstat().st_size
    return sizes


def _size_of_weights(stage: Stage) -> int:
    manifest = json.loads((stage.folder / "dist" / "audio-encoder-2.0.5" / "manifest.json").read_text())
    size: int = max(entry["size"] for entry in manifest["files"])
    return size
