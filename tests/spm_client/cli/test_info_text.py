"""What `spm info` shows a person, whole and within a hundred columns."""

from dataclasses import replace

import pytest

from manifests.batching import BatchPolicy
from manifests.devices import parse_affinity
from manifests.lockfile import InstalledEntry
from manifests.names import PluginName
from manifests.parts import PluginType, Requires, Variant
from manifests.ranges import Range
from manifests.versions import Version
from spm_client.cli.info_command import Told
from spm_client.cli.info_text import WIDTH, show
from spm_client.workflows.about import Signer, choose, variants_of
from tests.spm_client.workflows.test_about import HOST, KEY, OTHER, build, release, shard

NEWEST = replace(
    release(
        "1.2.0",
        build(Variant(os="linux", cpu="x86_64"), 1),
        build(Variant(os="linux", cpu="x86_64", accelerator="cuda", sm=("sm_90",)), 2),
        build(Variant(os="windows"), 3),
    ),
    summary="GELU in one kernel, for every precision that the sampler's attention blocks use, forwards and backwards",
    device_affinity=parse_affinity(["cuda:sm_90", "cuda", "cpu"]),
    batch_policy=BatchPolicy.from_value({"mode": "adaptive", "max_batch_size": 64, "max_latency_ms": 5}),
    requires=Requires(plugins=((PluginName("log-mel"), Range.parse("^1.2")),), torch=Range.parse(">=2.6,<3")),
    published="2026-12-01T09:30:59Z",
)
OLDER = replace(release("1.1.0", yanked="it forgets its weights when the device is changed while a batch is under way"))
INSTALLED = InstalledEntry(
    name=PluginName("gelu"),
    version=Version.parse("1.1.0"),
    release="1.1.0",
    manifest_sha256="00" * 32,
    type=PluginType.EXT,
    keyids=(KEY,),
    requested=True,
    requires=(),
)
GOLDEN = """\
gelu 1.2.0 (ext): GELU in one kernel, for every precision that the sampler's attention blocks use,
  forwards and backwards
registry   team.example
published  2026-12-01 09:30 UTC, by the registry's clock
installed  1.1.0: you asked for it, video-mixer requires it
devices    cuda:sm_90, cuda, cpu
batch      adaptive: at most 64 in a batch, waiting 5 ms at most, for latency
requires   log-mel ^1.2; torch >=2.6,<3; Seedance contract >=2.0,<3
signed by  aaaaaaaaaaaaaaaa…, ext key of `team`, pinned in the registry's keyring
           bbbbbbbbbbbbbbbb…, not pinned here, REVOKED as compromised
target     linux x86_64, Python 3.11.7, torch 2.13.0; cpu, cuda:0 (sm_86)
install    stops, since there is only a fallback: of 1.2.0, `linux-x86_64-cuda-sm_90` is built for
           sm_90, and the target has sm_86
           `spm install gelu --target lab.json --accept-fallback gelu` takes 1.2.0 (`linux-x86_64`)
           instead

VARIANT OF 1.2.0         SIZE   ON THIS TARGET
linux-x86_64             100 B  fits, and is the one to take
linux-x86_64-cuda-sm_90  100 B  no: is built for sm_90, and the target has sm_86
windows                  100 B  no: is built for windows, and the target runs linux

VERSION  PUBLISHED   SIZE   DEVICES              BATCH     ON THIS TARGET
1.2.0    2026-12-01  300 B  cuda:sm_90,cuda,cpu  adaptive  fits (linux-x86_64)
1.1.0    -           100 B  -                    -         yanked: it forgets its weights when the
                                                           device is changed while a batch is under
                                                           way
"""


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.mark.parametrize("width", [60, 72, 80, 99])
def test_what_is_told_fits_its_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))

    tell()

    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= width
    assert "it forgets its weights" in " ".join(told.split())


def test_a_plugin_is_told_of_whole(capsys: pytest.CaptureFixture[str]) -> None:
    tell()

    told = capsys.readouterr().out
    assert told == GOLDEN
    assert max(map(len, told.splitlines())) <= WIDTH


def tell() -> None:
    made = shard(OLDER, NEWEST)
    show(
        Told(
            shard=made,
            target=HOST,
            target_option="--target lab.json",
            choice=choose(made, HOST),
            release=NEWEST,
            variants=variants_of(NEWEST, HOST, ()),
            signers=(
                Signer(keyid=KEY, role="ext", publisher="team", origin="keyring"),
                Signer(keyid=OTHER, revoked="compromised"),
            ),
            fits={"1.2.0": "fits (linux-x86_64)", "1.1.0": "fits (any target)"},
            installed=INSTALLED,
            dependants=("video-mixer",),
        )
    )
