"""What `spm info` judges: what an install would take of a plugin alone, why a variant does not fit, who signed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from keys.pinned_keys import CoreKey, ExtKey, Keyring, RevocationReason, RevokedKey
from keys.public_key import KeyId
from manifests.errors import NotFound
from manifests.index import ReleaseEntry, Shard, VariantEntry
from manifests.names import PluginName
from manifests.parts import PluginType, Requires, Variant
from manifests.ranges import Range
from manifests.target import Target, TargetDevice, TorchFacts
from manifests.versions import Version
from spm_client.workflows.about import Signer, choose, find_release, signers_of, variants_of

CPU = TargetDevice(id="cpu", name="a cpu")
GPU = TargetDevice(id="cuda:0", name="a gpu", sm="sm_86")
HOST = Target(
    os="linux",
    cpu="x86_64",
    python="3.11.7",
    contract="2.0.5",
    devices=(CPU, GPU),
    torch=TorchFacts(version="2.13.0", cuda="12.8"),
)
KEY, OTHER, THIRD = KeyId("aa" * 32), KeyId("bb" * 32), KeyId("cc" * 32)
NO_KEYS = Keyring(core_threshold=1, core_keys=(), ext_keys=())


def build(variant: Variant | None = None, number: int = 0, keys: Sequence[str] = (KEY,)) -> VariantEntry:
    return VariantEntry(
        variant=variant,
        manifest_sha256=f"{number:064x}",
        manifest_size=500,
        signatures=tuple(keys),
        blobs_size=100,
    )


def release(version: str, *builds: VariantEntry, torch: str | None = None, yanked: str | None = None) -> ReleaseEntry:
    return ReleaseEntry(
        version=Version.parse(version),
        type=PluginType.EXT,
        seedance_version=Range.parse(">=2.0,<3"),
        requires=Requires(torch=Range.parse(torch) if torch else None),
        variants=builds or (build(),),
        yanked=yanked,
    )


def shard(*releases: ReleaseEntry) -> Shard:
    return Shard(registry="team.example", name=PluginName("gelu"), releases=releases)


@pytest.mark.parametrize(
    ("releases", "expected"),
    [
        ((), (None, None, False, "it has no release")),
        ((release("1.0.0"), release("1.1.0")), ("1.1.0", "any", False, None)),
        ((release("1.0.0"), release("2.0.0-rc.1")), ("1.0.0", "any", False, None)),
        ((release("2.0.0-rc.1"),), (None, None, False, "all its releases are pre-releases")),
        ((release("1.0.0"), release("1.1.0", yanked="it leaks")), ("1.0.0", "any", False, None)),
        ((release("1.1.0", yanked="it leaks"),), (None, None, False, "all its releases are yanked")),
        (
            (release("1.0.0"), release("1.1.0", torch=">=3,<4"), release("1.2.0", torch=">=99,<100")),
            ("1.0.0", "any", True, "1.2.0 needs torch `>=99,<100`, and the target has 2.13.0"),
        ),
        (
            (release("1.0.0", torch=">=3,<4"),),
            (None, None, False, "1.0.0 needs torch `>=3,<4`, and the target has 2.13.0"),
        ),
        (
            (release("1.0.0", build(), build(Variant(accelerator="cuda", sm=("sm_90",)), 1)),),
            ("1.0.0", "any", True, "of 1.0.0, `cuda-sm_90` is built for sm_90, and the target has sm_86"),
        ),
        ((release("1.0.0", build(), build(Variant(accelerator="npu"), 1)),), ("1.0.0", "any", False, None)),
    ],
)
def test_the_newest_that_is_offered_is_taken_or_the_fact_against_it_told(
    releases: tuple[ReleaseEntry, ...], expected: tuple[str | None, str | None, bool, str | None]
) -> None:
    told = choose(shard(*releases), HOST).to_dict()

    assert (told["version"], told["variant"], told["fallback"], told["why"]) == expected


YANKED = (release("1.2.0"), release("1.3.0", yanked="it leaks"))
BACK = "1.2.0 instead of the installed 1.3.0, which was yanked: it leaks"


@pytest.mark.parametrize(
    ("releases", "installed", "expected"),
    [
        (YANKED, "1.2.0", ("1.2.0", False, None)),
        (YANKED, "1.1.0", ("1.2.0", False, None)),
        (YANKED, "1.3.0", ("1.2.0", True, BACK)),
        (YANKED[:1], "1.3.0", ("1.2.0", True, "1.2.0 instead of the installed 1.3.0, which is no longer offered")),
        (YANKED[1:], "1.3.0", (None, False, "all its releases are yanked")),
        (
            (release("1.1.0"), release("1.2.0", torch=">=3,<4"), YANKED[1]),
            "1.3.0",
            (
                "1.1.0",
                True,
                "1.1.0 instead of the installed 1.3.0, which was yanked: it leaks; "
                "1.2.0 needs torch `>=3,<4`, and the target has 2.13.0",
            ),
        ),
        (
            (release("1.2.0"), release("1.3.0", torch=">=3,<4")),
            "1.3.0",
            (
                "1.2.0",
                True,
                "1.2.0 instead of the installed 1.3.0, which does not go with the rest of what was asked for; "
                "1.3.0 needs torch `>=3,<4`, and the target has 2.13.0",
            ),
        ),
    ],
)
def test_what_is_installed_is_not_said_to_be_moved_back_unasked(
    releases: tuple[ReleaseEntry, ...], installed: str, expected: tuple[str | None, bool, str | None]
) -> None:
    told = choose(shard(*releases), HOST, Version.parse(installed)).to_dict()

    assert (told["version"], told["fallback"], told["why"]) == expected


def test_a_fact_that_the_target_lacks_decides_nothing() -> None:
    unknown = replace(HOST, devices=(replace(GPU, sm=None),))
    cuda = release("1.1.0", build(Variant(accelerator="cuda", sm=("sm_86",))))

    choice = choose(shard(release("1.0.0"), cuda), unknown)
    judged = variants_of(cuda, unknown, ())

    why = "is built for sm_86, and the target does not say the sm of cuda:0"
    assert (choice.release, choice.why, choice.is_fallback) == (None, f"1.1.0 {why}", False)
    assert [one.to_dict() | {"manifest_sha256": ""} for one in judged] == [
        {"tag": "cuda-sm_86", "manifest_sha256": "", "size": 100, "fits": None, "why": why}
    ]


def test_each_variant_is_judged_by_itself() -> None:
    builds = (
        build(),
        build(Variant(accelerator="cuda", sm=("sm_90",)), 1),
        build(Variant(os="windows"), 2),
        build(None, 3),
    )

    judged = variants_of(release("1.0.0", *builds), HOST, {f"{3:064x}"})

    assert [(one.to_dict()["fits"], one.why) for one in judged] == [
        (True, None),
        (False, "is built for sm_90, and the target has sm_86"),
        (False, "is built for windows, and the target runs linux"),
        (False, "is revoked by the registry's root keys"),
    ]


def test_signers_are_told_as_they_are_pinned_here() -> None:
    ext = ExtKey(keyid=KEY, public_key_pem=b"", publisher="team", names=("*",), ceiling=None)
    core = CoreKey(keyid=OTHER, public_key_pem=b"")
    revoked = RevokedKey(keyid=THIRD, reason=RevocationReason.COMPROMISED)
    pinned = replace(NO_KEYS, ext_keys=(ext,))
    trusted = replace(pinned, core_keys=(core,), revoked_keys=(revoked,))

    signers = signers_of(release("1.0.0", build(keys=(THIRD, KEY)), build(keys=(OTHER,))), pinned, trusted)

    assert signers == (
        Signer(keyid=KEY, role="ext", publisher="team", origin="loader.conf"),
        Signer(keyid=OTHER, role="core", origin="keyring"),
        Signer(keyid=THIRD, revoked="compromised"),
    )


def test_a_release_that_is_not_there_is_refused_with_those_that_are() -> None:
    made = shard(*(release(f"1.{minor}.0") for minor in range(10)))

    with pytest.raises(NotFound) as refused:
        find_release(made, Version.parse("2.0.0"))

    assert refused.value.message == "`gelu` has no release 2.0.0 in `team.example`"
    assert refused.value.hint == "it has 1.9.0, 1.8.0, 1.7.0, 1.6.0, 1.5.0, 1.4.0, 1.3.0, 1.2.0 and 2 more"
