"""spm.lock as a value: its bytes, its round trip, and what a reader refuses."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.batching import BatchPolicy
from manifests.errors import NotCanonical, TooBig, TypeMismatch
from manifests.lockfile import Bindings
from manifests.names import PluginName
from manifests.parts import PluginType
from manifests.project import Project, ProjectRequirement
from manifests.project_lock import MAX_LOCK_BYTES, LockedPlugin, LockedRelease, LockedVariant, ProjectLock, TargetPin
from manifests.ranges import Range
from manifests.versions import Version
from tests.manifests.builders import (
    DIGEST,
    UNHURRIED,
    affinities,
    holds_or_refuses,
    moments,
    policies,
    refused,
    texts,
    types,
    versions,
    with_flipped_bytes,
    with_one_hostile_value,
)

OTHER = "0" * 64
GOLDEN = """{
  "_type": "spm.lock/1",
  "plugins": [
    {
      "name": "alpha",
      "requires": {
        "beta": "^1.0"
      },
      "targets": {
        "gpu": {
          "manifest_sha256": "D"
        },
        "laptop": {
          "fallback": "alpha 1.0.0 was accepted",
          "manifest_sha256": "D"
        }
      },
      "type": "ext",
      "variants": [
        {
          "blobs_size": 7,
          "keyids": [
            "K"
          ],
          "manifest_sha256": "D",
          "manifest_size": 512,
          "tag": "any"
        }
      ],
      "version": "1.0.0"
    },
    {
      "name": "beta",
      "registry": "other.example",
      "requires": {},
      "targets": {
        "gpu": {
          "manifest_sha256": "D"
        },
        "laptop": {
          "manifest_sha256": "D"
        }
      },
      "type": "core",
      "variants": [
        {
          "blobs_size": 7,
          "keyids": [
            "K"
          ],
          "manifest_sha256": "D",
          "manifest_size": 512,
          "tag": "any"
        }
      ],
      "version": "1.1.0"
    }
  ],
  "registry": "team.example",
  "requirements": {
    "alpha": {
      "batch-policy": "static",
      "range": "^1.0"
    }
  },
  "resolution": {
    "exclude-newer": "2026-01-31T12:00:00Z"
  },
  "targets": {
    "gpu": "K",
    "laptop": "D"
  }
}
""".replace('"D"', f'"{DIGEST}"').replace('"K"', f'"{OTHER}"')


def variant(tag: str = "any", sha256: str = DIGEST) -> LockedVariant:
    return LockedVariant(tag=tag, manifest_sha256=sha256, manifest_size=512, blobs_size=7, keyids=(OTHER,))


def plugin(name: str = "alpha", version: str = "1.0.0", *targets: str, **more: object) -> LockedPlugin:
    made = LockedPlugin(
        name=PluginName(name),
        version=Version.parse(version),
        type=PluginType.EXT,
        variants=(variant(),),
        targets=tuple((target, TargetPin(manifest_sha256=DIGEST)) for target in targets or ("laptop",)),
    )
    return replace(made, **more)  # type: ignore[arg-type]


def wants(name: str, text: str) -> ProjectRequirement:
    return ProjectRequirement(name=PluginName(name), range=Range.parse(text))


def small(**changes: object) -> ProjectLock:
    made = ProjectLock(
        registry="team.example",
        targets=(("laptop", OTHER),),
        requirements=(wants("alpha", "^1.0"),),
        plugins=(plugin(requires=((PluginName("beta"), Range.parse("^1.0")),)), plugin("beta", "1.1.0")),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def whole() -> ProjectLock:
    pins = (
        ("gpu", TargetPin(manifest_sha256=DIGEST)),
        ("laptop", TargetPin(manifest_sha256=DIGEST, fallback="alpha 1.0.0 was accepted")),
    )
    alpha, beta = small().plugins
    bound = Bindings(batch_policy=BatchPolicy.from_value("static"))
    return small(
        targets=(("gpu", OTHER), ("laptop", DIGEST)),
        requirements=(replace(wants("alpha", "^1.0"), bindings=bound),),
        plugins=(
            replace(alpha, targets=pins),
            replace(
                beta,
                type=PluginType.CORE,
                registry="other.example",
                targets=tuple((name, TargetPin(manifest_sha256=DIGEST)) for name in ("gpu", "laptop")),
            ),
        ),
        exclude_newer="2026-01-31T12:00:00Z",
    )


def test_bytes_are_sorted_and_end_in_one_line_feed() -> None:
    assert whole().to_bytes().decode() == GOLDEN
    assert ProjectLock.from_bytes(GOLDEN.encode()) == whole()


def test_order_and_spacing_of_the_members_do_not_matter() -> None:
    value = json.loads(GOLDEN)
    turned = json.dumps(dict(reversed(value.items())), indent=7).replace("\n", "\r\n")

    assert ProjectLock.from_bytes(turned.encode()) == whole()


def test_a_lock_answers_its_project() -> None:
    project = Project(name="speech", targets=(("laptop", "laptop.json"),), requirements=small().requirements)

    made = ProjectLock.answering(
        project,
        registry="team.example",
        targets={"laptop": OTHER},
        plugins=reversed(small().plugins),
        exclude_newer=None,
    )

    assert made == small()


def test_an_install_is_told_exactly_what_one_target_takes() -> None:
    lock = whole()

    assert lock.releases("laptop") == {
        "alpha": LockedRelease(
            version=Version.parse("1.0.0"), manifests=frozenset({DIGEST}), fallback="alpha 1.0.0 was accepted"
        ),
        "beta": LockedRelease(version=Version.parse("1.1.0"), manifests=frozenset({DIGEST}), registry="other.example"),
    }
    assert {name: bound.to_dict() for name, bound in lock.bindings.items()} == {"alpha": {"batch_policy": "static"}}
    assert {name: str(version) for name, version in lock.versions("gpu").items()} == {"alpha": "1.0.0", "beta": "1.1.0"}
    assert lock.releases("nowhere") == {}


@pytest.mark.parametrize(
    ("lock", "problem"),
    [
        (small(plugins=small().plugins[:1]), "`alpha` requires `beta`, which is not there for the target `laptop`"),
        (small(plugins=small().plugins[1:]), "spm.toml requires `alpha`, which is not there for the target `laptop`"),
        (
            small(requirements=(wants("alpha", "^2.0"),)),
            "spm.toml requires `alpha` `^2.0`, but 1.0.0 is there for the target `laptop`",
        ),
        (small(plugins=small().plugins[::-1]), "`plugins` is not ordered by name and version, each once"),
        (
            small(plugins=(plugin(), plugin(version="1.2.0"))),
            "a plugin is there in two versions for the target `laptop`",
        ),
        (
            small(plugins=(plugin("alpha", "1.0.0", "laptop", "moon"),)),
            "`alpha` 1.0.0 is for the target `moon`, which is not in `targets`",
        ),
        (
            small(plugins=(plugin(targets=(("laptop", TargetPin(manifest_sha256=OTHER)),)),)),
            "`alpha` 1.0.0 for `laptop` has a manifest that is none of its variants",
        ),
        (
            small(plugins=(plugin(variants=(variant(), variant("any", OTHER))),)),
            "`alpha` 1.0.0 has two variants of one tag",
        ),
    ],
)
def test_a_lock_that_contradicts_itself_is_refused(lock: ProjectLock, problem: str) -> None:
    assert refused(lambda: ProjectLock.from_bytes(lock.to_bytes()), TypeMismatch) == f"spm.lock is refused: {problem}"


def test_every_problem_is_told_with_its_path() -> None:
    value = json.loads(GOLDEN)
    value["_type"] = "spm.lock/2"
    value["more"] = 1
    value["requirements"]["alpha"]["range"] = "1"
    value["plugins"][0]["version"] = "1.0"
    value["plugins"][0]["targets"]["gpu"]["manifest_sha256"] = "x"
    value["plugins"][1]["variants"][0]["manifest_size"] = 0
    value["targets"]["gpu"] = "y"
    value["resolution"] = {"exclude-newer": "today", "older": 1}

    with pytest.raises(TypeMismatch) as caught:
        ProjectLock.from_bytes(json.dumps(value).encode())

    paths = [problem.partition(":")[0] for problem in caught.value.context["problems"]]
    assert paths == [
        "`_type`",
        "`targets.gpu`",
        "`requirements.alpha.range`",
        "`plugins`",
        "`resolution.exclude-newer`",
        "`resolution.older` is not a known member",
        "`more` is not a known member",
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "spm.lock is not JSON: Expecting value: line 1 column 1 (char 0)"),
        (b"{\n<<<<<<< HEAD\n", "spm.lock has the conflict markers of a merge in it, from line 2 on"),
        (b"\xef\xbb\xbf{}", "spm.lock begins with a byte order mark, which does not belong in it"),
        (b'{"a": 1.5}', "spm.lock has the number '1.5'; only integers of 64 bits are allowed"),
        (
            b'{"a": ' + b"1" * 5000 + b"}",
            f"spm.lock has the number '{'1' * 40}'; only integers of 64 bits are allowed",
        ),
        (b'{"a": 1, "a": 2}', "spm.lock has a member twice in one table: a"),
    ],
)
def test_what_is_no_strict_json_is_refused(data: bytes, message: str) -> None:
    assert refused(lambda: ProjectLock.from_bytes(data), NotCanonical) == message


def test_a_lock_beyond_the_bound_is_not_parsed() -> None:
    assert refused(lambda: ProjectLock.from_bytes(b" " * (MAX_LOCK_BYTES + 1)), TooBig) == (
        "spm.lock has 33554433 bytes, more than the 33554432 allowed"
    )


@st.composite
def locks(draw: st.DrawFn) -> ProjectLock:
    targets = draw(st.lists(st.sampled_from(["cpu", "gpu", "a.b_c"]), min_size=1, max_size=3, unique=True))
    names = sorted(draw(st.lists(st.sampled_from(["alpha", "beta", "gamma"]), max_size=3, unique=True)))
    plugins = [draw(_plugin(name, names, sorted(targets))) for name in names]
    return ProjectLock(
        registry="team.example",
        targets=tuple((name, draw(st.sampled_from([DIGEST, OTHER]))) for name in sorted(targets)),
        requirements=tuple(draw(_requirement(name)) for name in names if draw(st.booleans())),
        plugins=tuple(plugins),
        exclude_newer=draw(st.none() | moments),
        pre=frozenset(draw(st.sets(st.sampled_from(names)))) if names else frozenset(),
        accept_fallback=frozenset(draw(st.sets(st.sampled_from(names)))) if names else frozenset(),
    )


def _requirement(name: str) -> st.SearchStrategy[ProjectRequirement]:
    return st.builds(
        ProjectRequirement,
        name=st.just(PluginName(name)),
        range=st.just(Range.parse("*")),
        registry=st.sampled_from([None, "other.example"]),
        is_pre=st.booleans(),
        is_fallback_accepted=st.booleans(),
        bindings=st.builds(Bindings, affinity=st.none() | affinities, batch_policy=st.none() | policies),
    )


def _plugin(name: str, names: list[str], targets: list[str]) -> st.SearchStrategy[LockedPlugin]:
    others = [PluginName(other) for other in names if other != name]
    pin = st.builds(TargetPin, manifest_sha256=st.just(DIGEST), fallback=st.none() | texts)
    return st.builds(
        LockedPlugin,
        name=st.just(PluginName(name)),
        version=versions,
        type=types,
        variants=st.just((variant(), variant("linux", OTHER))),
        targets=st.tuples(*(pin for _ in targets)).map(lambda pins: tuple(zip(targets, pins, strict=True))),
        requires=st.lists(st.sampled_from(others), unique=True).map(
            lambda found: tuple((other, Range.parse("*")) for other in sorted(found))
        )
        if others
        else st.just(()),
        registry=st.sampled_from([None, "other.example"]),
    )


@pytest.mark.property
@UNHURRIED
@given(locks())
def test_round_trip(lock: ProjectLock) -> None:
    assert ProjectLock.from_bytes(lock.to_bytes()) == lock
    assert ProjectLock.from_bytes(lock.to_bytes()).to_bytes() == lock.to_bytes()


@pytest.mark.property
@UNHURRIED
@given(locks().flatmap(lambda lock: with_flipped_bytes(lock.to_bytes())))
def test_damaged_bytes_are_read_or_refused(data: bytes) -> None:
    holds_or_refuses(lambda: ProjectLock.from_bytes(data))


@pytest.mark.property
@UNHURRIED
@given(locks().flatmap(lambda lock: with_one_hostile_value(lock.to_dict())))
def test_a_hostile_value_is_read_or_refused(value: object) -> None:
    holds_or_refuses(lambda: ProjectLock.from_bytes(json.dumps(value).encode("utf-8", "surrogatepass")))
