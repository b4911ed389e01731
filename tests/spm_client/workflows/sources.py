"""Source folders of plugins for the tests of packing. Packs nothing."""

from pathlib import Path

from manifests.target import Target, TargetDevice, TorchFacts
from spm_client.workflows.pack import Packed, pack

HOST = Target(
    os="linux",
    cpu="x86_64",
    python="3.11.2",
    contract="2.0.5",
    devices=(TargetDevice(id="cpu", name="a cpu"),),
    torch=TorchFacts(version="2.13.0"),
)
MOMENT = "2026-01-31T12:00:00Z"


def write_source(folder: Path, *, type: str = "ext", entry: str = "tone:make") -> Path:  # noqa: A002
    (folder / "plugin" / "data").mkdir(parents=True)
    (folder / "manifest.yaml").write_text(
        f"name: tone\nversion: 1.0.0\ntype: {type}\nsummary: A tone\nlicense: MIT\nentry: {entry}\n"
        'seedance_version: ">=2.0,<3"\n'
    )
    (folder / "plugin" / "tone.py").write_text("def make(context): ...\n")
    (folder / "plugin" / "data" / "a.bin").write_bytes(b"\x00\x01")
    return folder


def packed(source: Path, out: Path, *, publisher: str = "audio-team", created: str = MOMENT) -> Packed:
    return pack(source, out, registry="team.example", publisher=publisher, created=created, host=HOST)
