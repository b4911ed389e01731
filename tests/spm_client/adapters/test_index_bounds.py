"""The index as values: one without end is given up, and one that changes what it said before is a fork."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import pytest

from manifests.errors import BadResponse, Fork, LimitReached, NotFound
from manifests.index import ReleaseEntry, Shard, VariantEntry
from manifests.lockfile import InstalledEntry
from manifests.names import PluginName, parse_name
from manifests.parts import PluginType, Requires
from manifests.ranges import Range
from manifests.versions import Version
from spm_client.adapters import index
from spm_client.adapters.http import RegistryClient
from spm_client.adapters.index import RegistryIndex, unsaid

NOWHERE = RegistryClient("http://127.0.0.1:9")
BETA = parse_name("beta")
TELL = "the registry's index was altered: tell its administrator, and install nothing of it until then"


class Signed:
    """Shards as the signed metadata gives them, now and to the last command."""

    def __init__(
        self, now: Callable[[PluginName], bytes | None], *before: bytes, installed: InstalledEntry | None = None
    ) -> None:
        self._now = now
        self._before = before
        self._installed = installed
        self.prefetched: list[tuple[list[PluginName], int]] = []

    def shard(self, name: PluginName) -> bytes | None:
        return self._now(name)

    def prefetch(self, names: Iterable[PluginName], max_bytes: int) -> None:
        self.prefetched.append((list(names), max_bytes))

    def seen(self, name: PluginName) -> Sequence[bytes]:
        del name
        return self._before

    def installed(self, name: PluginName) -> InstalledEntry | None:
        del name
        return self._installed


def release(version: str, **more: object) -> ReleaseEntry:
    variant = VariantEntry(
        variant=None, manifest_sha256="ab" * 32, manifest_size=100, signatures=("cd" * 32,), blobs_size=3
    )
    entry = ReleaseEntry(
        version=Version.parse(version),
        type=PluginType.EXT,
        seedance_version=Range.parse(">=2.0,<3"),
        requires=Requires(),
        variants=(variant,),
    )
    return replace(entry, **more)  # type: ignore[arg-type] # members of a release


def shard(*releases: ReleaseEntry, registry: str = "team.example") -> Shard:
    return Shard(registry=registry, name=BETA, releases=releases)


def told(now: Shard, *before: bytes, installed: InstalledEntry | None = None) -> Shard:
    signed = Signed(lambda _: now.to_bytes(), *before, installed=installed)
    return RegistryIndex(NOWHERE, signed, "team.example").shard(BETA)


def built(digest: str) -> tuple[VariantEntry, ...]:
    """Return the one variant of a release, with a manifest of this digest."""
    return (replace(release("1.0.0").variants[0], manifest_sha256=digest),)


def test_a_chain_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MAX_SHARDS", 3)
    signed = Signed(lambda name: Shard(registry="team.example", name=name).to_bytes())
    endless = RegistryIndex(NOWHERE, signed, "team.example")
    for number in range(3):
        endless.shard(parse_name(f"p{number}"))

    with pytest.raises(LimitReached) as refused:
        endless.shard(parse_name("p3"))

    assert refused.value.reason == "limit:index"
    assert refused.value.message == (
        "the requirements led to 3 plugins of `team.example` with 225 bytes of index, and still to more; "
        "the limits are 3 plugins, 268435456 bytes and 600 s"
    )
    assert endless.shard(parse_name("p1")).name == "p1"


def test_what_is_fetched_ahead_counts_against_the_bounds_and_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MAX_SHARDS", 4)
    monkeypatch.setattr(index, "MAX_INDEX_BYTES", 1000)
    signed = Signed(lambda name: Shard(registry="team.example", name=name).to_bytes())
    found = RegistryIndex(NOWHERE, signed, "team.example")
    names = [parse_name(f"p{number}") for number in range(6)]

    found.shard(names[0])
    found.prefetch([*names[:3], names[1]])
    found.prefetch(names)
    found.prefetch(names[:3])

    assert signed.prefetched == [(names[1:3], 1000 - 75), (names[3:4], 1000 - 75)]


def test_nothing_is_fetched_ahead_beyond_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MAX_INDEX_BYTES", 75)
    signed = Signed(lambda name: Shard(registry="team.example", name=name).to_bytes())
    found = RegistryIndex(NOWHERE, signed, "team.example")

    found.shard(BETA)
    found.prefetch([parse_name("p1"), parse_name("p2")])

    assert signed.prefetched == []


def test_a_plugin_that_the_signed_index_does_not_have_is_not_found() -> None:
    with pytest.raises(NotFound) as refused:
        RegistryIndex(NOWHERE, Signed(lambda _: None), "team.example").shard(BETA)

    assert refused.value.message == "the registry `team.example` has no plugin `beta`"
    assert refused.value.hint == "check how it is spelled, or ask whoever runs the registry"


def test_what_was_signed_and_is_no_index_is_a_bad_response() -> None:
    with pytest.raises(BadResponse) as refused:
        RegistryIndex(NOWHERE, Signed(lambda _: b"{"), "team.example").shard(BETA)

    assert refused.value.message.startswith("the index of `beta` cannot be read: the index shard is not JSON: ")
    assert refused.value.hint == "the registry has signed what is no index: ask its administrator"


@pytest.mark.parametrize(
    ("now", "member", "was", "now_is"),
    [
        (release("1.0.0", summary="Another"), "summary", "nothing", '"Another"'),
        (
            release("1.0.0", requires=Requires(torch=Range.parse(">=2,<3"))),
            "requires",
            "{}",
            '{"torch": ">=2,<3"}',
        ),
        (release("1.0.0+b"), "version", '"1.0.0"', '"1.0.0+b"'),
        (release("1.0.0", type=PluginType.CORE), "type", '"ext"', '"core"'),
    ],
    ids=["summary", "requires", "build", "class"],
)
def test_a_release_that_is_another_than_it_was_is_a_fork(now: ReleaseEntry, member: str, was: str, now_is: str) -> None:
    with pytest.raises(Fork) as refused:
        told(shard(now, release("2.0.0")), shard(release("1.0.0")).to_bytes())

    assert (refused.value.exit_code, refused.value.reason, refused.value.hint) == (24, "fork", TELL)
    assert refused.value.message == (
        f"the index of `beta` now says another thing of 1.0.0 than it did: `{member}` was {was} and is {now_is}; "
        "a release never changes"
    )
    assert refused.value.context == {"name": "beta", "version": "1.0.0", "member": member}


@pytest.mark.parametrize(
    "now",
    [
        shard(release("1.0.0")),
        shard(release("1.0.0", yanked="it is slow")),
        shard(release("1.0.0"), release("1.1.0")),
        shard(release("0.9.0"), release("1.0.0")),
        shard(),
    ],
    ids=["same", "yanked", "newer", "older", "hidden"],
)
@pytest.mark.parametrize("before", [shard(release("1.0.0")), shard(release("1.0.0", yanked="it is slow"))])
def test_a_release_may_be_yanked_and_others_may_come(now: Shard, before: Shard) -> None:
    assert told(now, before.to_bytes()) == now


@pytest.mark.parametrize(
    "before",
    [b"", b"\0", b"{}", shard(release("1.0.0", summary="Another"), registry="other.example").to_bytes()],
    ids=["empty", "damaged", "no-index", "of-another-registry"],
)
def test_what_was_kept_and_is_no_index_of_this_registry_says_nothing(before: bytes) -> None:
    assert told(shard(release("1.0.0")), before) == shard(release("1.0.0"))


def test_a_release_that_was_gone_in_between_is_still_held_to_what_it_was() -> None:
    first, hidden = shard(release("1.0.0"), release("2.0.0")).to_bytes(), shard(release("2.0.0")).to_bytes()
    kept = unsaid(hidden, [first])
    assert kept is not None
    kept = unsaid(hidden, [kept, hidden])
    assert kept is not None
    back = shard(release("1.0.0", summary="Another"), release("2.0.0"))

    with pytest.raises(Fork):
        told(back, kept, hidden)

    assert told(Shard.from_bytes(first), kept, hidden) == Shard.from_bytes(first)
    assert unsaid(first, [kept, hidden]) is None


def test_a_yank_that_was_undone_is_remembered() -> None:
    yanked, offered = shard(release("1.0.0", yanked="it is slow")).to_bytes(), shard(release("1.0.0")).to_bytes()
    kept = unsaid(offered, [yanked])
    assert kept is not None
    kept = unsaid(offered, [kept, offered])
    assert kept is not None
    found = RegistryIndex(NOWHERE, Signed(lambda _: offered, kept, offered), "team.example")

    assert found.once_yanked(BETA, Version.parse("1.0.0")) == "it is slow"
    assert found.once_yanked(BETA, Version.parse("2.0.0")) is None
    assert unsaid(yanked, [kept, offered]) is None


def test_what_is_said_no_more_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_MAX_UNSAID", 1000)
    many = shard(*(release(f"1.0.{number}") for number in range(50)))

    kept = unsaid(shard().to_bytes(), [many.to_bytes()])

    assert kept is not None
    assert len(kept) < 1200
    assert [entry.version.text for entry in Shard.from_bytes(kept).releases] == ["1.0.0", "1.0.1", "1.0.2"]


@pytest.mark.parametrize("damage", [b"", b"{}", shard(release("0.1.0"), registry="other.example").to_bytes()])
def test_what_is_said_no_more_and_cannot_be_read_is_nothing(damage: bytes) -> None:
    assert unsaid(shard().to_bytes(), [damage]) is None


def test_an_installed_release_that_is_listed_with_another_manifest_is_a_fork() -> None:
    installed = InstalledEntry(
        name=BETA,
        version=Version.parse("1.0.0"),
        release="v1.0.0",
        manifest_sha256="ab" * 32,
        type=PluginType.EXT,
        keyids=("cd" * 32,),
        requested=True,
    )
    other = release("1.0.0", variants=built("ef" * 32))

    with pytest.raises(Fork) as refused:
        told(shard(other), installed=installed)

    assert refused.value.message == (
        f"the index of `beta` lists 1.0.0 with other manifests (sha256:{'ef' * 32}) than the one that is installed "
        f"(sha256:{'ab' * 32}); a release never changes"
    )
    assert refused.value.hint == TELL
    for now in (shard(release("1.0.0")), shard(), shard(release("2.0.0", variants=built("ef" * 32)))):
        assert told(now, installed=installed) == now
