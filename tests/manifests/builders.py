"""Documents for the tests of this folder, single and generated. Holds no test."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from manifests.batching import BatchMode, BatchPolicy, Objective
from manifests.canonical import canonical_bytes
from manifests.devices import Device
from manifests.errors import SpmError
from manifests.index import ReleaseEntry, Shard, VariantEntry
from manifests.lockfile import Bindings, Generation, InstalledEntry
from manifests.manifest import Manifest
from manifests.names import PluginName
from manifests.parts import (
    TRAPS,
    Capabilities,
    Controls,
    FileEntry,
    PluginType,
    Requires,
    TensorSpec,
    Variant,
)
from manifests.paths import check_distinct
from manifests.ranges import Range
from manifests.target import Target, TargetDevice, TorchFacts
from manifests.versions import Version

# A shared machine may stall for a second; that says nothing of the law under test.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)

DIGEST = "ab" * 32
CREATED = "2026-01-31T12:00:00Z"
MAX_MESSAGE = 20_000
FILE = FileEntry(path="encoder.py", size=7, sha256=DIGEST, mode="r")

AUTHOR = b"""
name: audio-encoder
version: 2.0.5
type: ext
summary: Turns speech into vectors
license: MIT
entry: audio_encoder:factory
seedance_version: ">=2.0.0,<3"
"""


def refused(call: Callable[[], object], kind: type[SpmError] = SpmError) -> str:
    """Return the message of the refusal that the call raises."""
    try:
        result = call()
    except SpmError as error:
        if kind not in {type(error), SpmError}:
            raise
        return error.message
    raise AssertionError(f"nothing was refused, and the call returned {result!r}")


def holds_or_refuses(call: Callable[[], object]) -> None:
    """Run the call; a refusal must be short and of JSON, anything else that it raises is a fault."""
    try:
        call()
    except SpmError as error:
        canonical_bytes({"context": error.context})
        if len(error.message) > MAX_MESSAGE:
            raise AssertionError(f"the refusal has {len(error.message)} characters") from error


def manifest(**changes: Any) -> Manifest:
    made = Manifest(
        registry="team.example",
        publisher="audio-team",
        created=CREATED,
        name=PluginName("audio-encoder"),
        version=Version.parse("2.0.5"),
        type=PluginType.EXT,
        summary="Turns speech into vectors",
        license="MIT",
        entry="audio_encoder:factory",
        seedance_version=Range.parse(">=2.0.0,<3"),
        files=(FILE,),
    )
    return replace(made, **changes)


def target(*devices: TargetDevice, **changes: Any) -> Target:
    made = Target(
        os="linux",
        cpu="x86_64",
        python="3.11.4",
        contract="2.0.5",
        devices=devices or (TargetDevice(id="cpu", name="a cpu"),),
        torch=TorchFacts(version="2.13.0+cpu"),
    )
    return replace(made, **changes)


def installed(name: str = "audio-encoder", **changes: Any) -> InstalledEntry:
    made = InstalledEntry(
        name=PluginName(name),
        version=Version.parse("1.0.0"),
        release="1.0.0",
        manifest_sha256=DIGEST,
        type=PluginType.EXT,
        keyids=(DIGEST,),
        requested=True,
    )
    return replace(made, **changes)


numbers = st.one_of(st.integers(0, 3), st.integers(0, 999_999_999))
labels = st.sampled_from(["", "-alpha.", "-beta.", "-rc.", "-dev."])
builds = st.sampled_from(["", "+cpu", "+a-b.7", "+001"])


@st.composite
def version_texts(draw: st.DrawFn) -> str:
    release = ".".join(str(draw(numbers)) for _ in range(3))
    label = draw(labels)
    return release + (f"{label}{draw(numbers)}" if label else "") + draw(builds)


partials = st.sampled_from(["1", "0", "1.2", "0.0", "1.2.3", "0.0.1", "1.2.3-rc.1", "2.x", "1.2.*", "999999999.0.1+x"])
operators = st.sampled_from([">=", "<=", ">", "<", "=", "==", "!=", "^", "~"])
comparators = st.one_of(
    st.builds(lambda sign, partial: sign + partial, operators, partials), st.sampled_from(["*", "1.x"])
)
alternatives = st.one_of(
    st.lists(comparators, min_size=1, max_size=3).map(",".join),
    st.lists(comparators, min_size=1, max_size=3).map(" ".join),
    st.builds("{} - {}".format, partials, partials),
)
range_texts = st.lists(alternatives, min_size=1, max_size=2).map(" || ".join)

versions = version_texts().map(Version.parse)
ranges = range_texts.map(Range.parse)
names = st.from_regex(r"[a-z0-9]{1,6}(-[a-z0-9]{1,6}){0,2}", fullmatch=True).map(PluginName)
digests = st.sampled_from([DIGEST, "0" * 64, "f" * 64])
texts = st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=40)
moments = st.datetimes(timezones=st.none()).map(lambda moment: moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0"))
types = st.sampled_from(PluginType)

devices = st.one_of(
    st.builds(Device, kind=st.sampled_from(["cpu", "mps", "cuda", "npu", "xpu"])),
    st.builds(Device, kind=st.sampled_from(["cuda", "npu", "xpu"]), index=st.integers(0, 999)),
    st.builds(Device, kind=st.just("cuda"), sm=st.sampled_from(["sm_86", "sm_90a", "sm_100f"])),
)
affinities = st.lists(devices, min_size=1, max_size=4, unique=True).map(tuple)
policies = st.builds(
    BatchPolicy,
    mode=st.sampled_from(BatchMode),
    max_batch_size=st.integers(1, 65536),
    max_latency_ms=st.integers(1, 600_000),
    objective=st.sampled_from(Objective),
)
requirements = st.builds(
    Requires,
    plugins=st.dictionaries(names, ranges, max_size=3).map(lambda found: tuple(sorted(found.items()))),
    torch=st.none() | ranges,
    python=st.none() | ranges,
    packages=st.lists(st.sampled_from(["numpy==2.1.0", "PyYAML[c]==6.0"]), max_size=2).map(tuple),
)
short_ranges = st.sampled_from(["~2.13.0", "==2.13.0", "=2.13.0", "~=2.13", "^2", ">=2,<3", ">=2 <3", "*"]).map(
    Range.parse
)
variants = st.builds(
    Variant,
    os=st.sampled_from([None, "linux", "darwin"]),
    cpu=st.sampled_from([None, "x86_64", "linux"]),
    accelerator=st.sampled_from([None, "cpu", "cuda"]),
    cuda=st.none() | short_ranges,
    sm=st.lists(st.sampled_from(["sm_86", "sm_90a"]), max_size=2, unique=True).map(tuple),
    torch=st.none() | short_ranges,
    python=st.none() | short_ranges,
)
controls = st.builds(
    Controls,
    memory_fraction=st.sampled_from([None, "0.75", "1", "1.0"]),
    allow_growth=st.none() | st.booleans(),
    memory=st.sampled_from([None, "512MiB"]),
    compute_capability_override=st.sampled_from([None, "sm_86"]),
    tensor_core_policy=st.sampled_from([None, "auto", "force", "off"]),
    precision=st.sampled_from([None, "float32"]),
)
specs = st.lists(
    st.builds(
        TensorSpec,
        name=st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True),
        dtype=st.sampled_from(["float32", "bfloat16", "bool"]),
        shape=st.lists(st.integers(-1, 2**40), max_size=4).map(tuple),
    ),
    max_size=3,
    unique_by=lambda spec: spec.name,
).map(tuple)
capabilities = st.builds(
    Capabilities,
    network=st.booleans(),
    read=st.sampled_from([(), ("/srv/data",)]),
    write=st.sampled_from([(), ("/tmp/x.y",)]),
    env=st.sampled_from([(), ("HOMEPAGE", "_A1")]),
    processes=st.integers(0, 4096),
    exec=st.booleans(),
)


def _are_distinct(paths: list[str]) -> bool:
    try:
        check_distinct(paths)
    except SpmError:
        return False
    return True


paths = st.from_regex(r"[A-Za-z_][A-Za-z0-9._+-]{0,6}(/[A-Za-z0-9_][A-Za-z0-9._+-]{0,4}){0,2}", fullmatch=True)
file_tables = (
    st.lists(paths, min_size=1, max_size=5, unique=True)
    .filter(_are_distinct)
    .flatmap(
        lambda found: st.tuples(
            *(
                st.builds(
                    FileEntry,
                    path=st.just(path),
                    size=st.integers(0, 2**36),
                    sha256=digests,
                    mode=st.sampled_from("rx"),
                )
                for path in sorted(found)
            )
        )
    )
)
manifests = st.builds(
    Manifest,
    registry=st.sampled_from(["team.example", "a"]),
    publisher=names,
    created=moments,
    name=st.just(PluginName("the-plugin-itself")),
    version=versions,
    type=types,
    summary=texts,
    license=texts,
    entry=st.sampled_from(["m:f", "a.b_c:D"]),
    seedance_version=ranges,
    requires=requirements,
    device_affinity=st.none() | affinities,
    batch_policy=st.none() | policies,
    controls=controls,
    inputs=specs,
    outputs=specs,
    capabilities=capabilities,
    variant=st.none() | variants,
    waivers=st.dictionaries(st.sampled_from(TRAPS), st.just("it was never meant to"), max_size=3).map(
        lambda found: tuple(sorted(found.items()))
    ),
    files=file_tables,
)
variant_entries = st.builds(
    VariantEntry,
    variant=st.none() | variants,
    manifest_sha256=digests,
    manifest_size=st.integers(1, 1 << 20),
    signatures=st.lists(digests, max_size=2, unique=True).map(tuple),
    blobs_size=st.integers(0, 2**36),
)
releases = st.builds(
    ReleaseEntry,
    version=versions,
    type=types,
    seedance_version=ranges,
    requires=requirements,
    variants=st.lists(
        variant_entries, max_size=3, unique_by=lambda entry: entry.variant.tag if entry.variant else None
    ).map(tuple),
    summary=st.just("") | texts,
    device_affinity=st.none() | affinities,
    batch_policy=st.none() | policies,
    published=st.none() | moments,
    yanked=st.none() | texts,
)
shards = st.builds(
    Shard,
    registry=st.just("team.example"),
    name=names,
    releases=st.lists(releases, max_size=3, unique_by=lambda release: release.version).map(
        lambda found: tuple(sorted(found, key=lambda release: release.version))
    ),
)


@st.composite
def generations(draw: st.DrawFn) -> Generation:
    found = sorted(draw(st.lists(names, max_size=4, unique=True)))
    return Generation(
        number=draw(st.integers(1, 999_999)),
        registry="team.example",
        created=draw(moments),
        plugins=tuple(draw(_installed(name, found)) for name in found),
    )


def _installed(name: PluginName, all_names: list[PluginName]) -> st.SearchStrategy[InstalledEntry]:
    others = [other for other in all_names if other != name]
    return versions.flatmap(
        lambda version: st.builds(
            InstalledEntry,
            name=st.just(name),
            version=st.just(version),
            release=st.sampled_from([str(version), f"{version}+linux-x86_64"]),
            manifest_sha256=digests,
            type=types,
            keyids=st.lists(digests, max_size=2, unique=True).map(tuple),
            requested=st.booleans(),
            requires=st.lists(st.sampled_from(others), unique=True).map(tuple) if others else st.just(()),
            fallback=st.none() | texts,
            bindings=st.builds(Bindings, affinity=st.none() | affinities, batch_policy=st.none() | policies),
        )
    )


targets = st.builds(
    Target,
    os=st.sampled_from(["linux", "darwin"]),
    cpu=st.just("x86_64"),
    python=st.sampled_from(["3.11.4", "3.14.0rc1"]),
    contract=st.just("2.0.5"),
    devices=st.lists(
        st.builds(
            TargetDevice,
            id=st.sampled_from(["cpu", "mps", "cuda:0", "cuda:12", "npu:3"]),
            name=texts,
            sm=st.sampled_from([None, "sm_90a"]),
            memory_bytes=st.none() | st.integers(0, 2**53 - 1),
        ),
        max_size=4,
        unique_by=lambda device: device.id,
    ).map(tuple),
    glibc=st.sampled_from([None, "2.39"]),
    torch=st.none()
    | st.builds(
        TorchFacts,
        version=st.sampled_from(["2.13.0+cpu", "2.14.0.dev20260801+cu130"]),
        cuda=st.sampled_from([None, "12.6"]),
        cxx11_abi=st.none() | st.booleans(),
    ),
    driver=st.sampled_from([None, "580.65.06"]),
)

# JSON values of every kind, in the places where a document has others.
hostile = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(max_size=8)
    | st.just("x" * 5000)
    | st.just("1.0.0\n"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def with_one_hostile_value(draw: st.DrawFn, value: Any) -> Any:
    """Return the document with one of its values, at any depth, replaced by a hostile one."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        name = draw(st.sampled_from(sorted(value)))
        return value | {name: draw(with_one_hostile_value(value[name]))}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], draw(with_one_hostile_value(value[place])), *value[place + 1 :]]
    return draw(hostile)


@st.composite
def with_flipped_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """Return the bytes with a few of them replaced, removed or put in."""
    broken = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(broken) - 1, 0)))
        broken[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(broken)
