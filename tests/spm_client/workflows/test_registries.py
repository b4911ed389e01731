"""A name is asked of the one registry that it belongs to, and whatever that one says or fails to say is the answer."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from keys.keyring import LoaderConf
from keys.trust_state import read_trust_state
from manifests.errors import (
    AmbiguousSource,
    AuthRequired,
    BadResponse,
    ConfigSyntax,
    Fork,
    Mix,
    NotFound,
    RegistryTimeout,
    RegistryUnreachable,
    ScopeRefused,
    SpmError,
)
from manifests.lockfile import Generation, InstalledEntry
from manifests.names import PluginName
from manifests.parts import PluginType
from manifests.versions import Version
from spm_client.adapters.http import RegistryClient
from spm_client.store.generations import commit
from spm_client.store.staging import staging
from spm_client.workflows.registries import RegistryIndexes
from tests.e2e.snapshots import snapshot
from tests.fakes.failing_server import failing_server
from tests.fakes.two_registries import PX, TwoRegistries, two_registries

SCALE, BASE = PluginName("px-scale"), PluginName("base")


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoRegistries]:
    """Give both registries; each has both names, as a squatter of either would."""
    with two_registries(tmp_path / "store") as made:
        made.own.publish("base", "1.0.0")
        made.px.publish("px-scale", "1.0.0")
        made.px.publish("base", "9.0.0")
        made.own.publish("px-scale", "9.0.0")
        yield made


@contextmanager
def indexes(two: TwoRegistries, wished: dict[PluginName, frozenset[str]] | None = None) -> Iterator[RegistryIndexes]:
    with (
        staging(two.layout) as scratch,
        RegistryIndexes(two.layout, two.conf, client, scratch=scratch, now=datetime.now(UTC), wished=wished) as opened,
    ):
        yield opened


def client(conf: LoaderConf) -> RegistryClient:
    return RegistryClient(conf.registry_url)


def versions(opened: RegistryIndexes, name: PluginName) -> list[str]:
    return [str(release.version) for release in opened.releases(name)]


def refusal(two: TwoRegistries, name: PluginName) -> SpmError:
    """Return why the releases of a name could not be had, and assert that the store stayed as it was."""
    before = snapshot(two.root)
    with pytest.raises(SpmError) as caught, indexes(two) as opened:
        opened.releases(name)
    assert snapshot(two.root) == before
    return caught.value


def test_each_name_is_asked_of_its_own_registry_alone(two: TwoRegistries) -> None:
    with indexes(two) as opened:
        found = {name: versions(opened, name) for name in (SCALE, BASE)}

    assert found == {SCALE: ["1.0.0"], BASE: ["1.0.0"]}
    own, px = two.asked()
    assert [path for path in own if "px-scale" in path] == []
    assert [path for path in px if "base" in path] == []


def test_a_registry_of_which_nothing_is_asked_is_not_even_opened(two: TwoRegistries) -> None:
    with indexes(two) as opened:
        opened.releases(SCALE)
    asked_of_own, asked_of_px = two.asked()
    with indexes(two) as opened:
        opened.releases(BASE)

    assert (asked_of_own, bool(asked_of_px)) == ([], True)
    assert two.asked()[1] == []


def test_a_registry_is_opened_once(two: TwoRegistries) -> None:
    two.px.publish("px-blur")
    with indexes(two) as opened:
        opened.releases(SCALE)
        opened.releases(PluginName("px-blur"))
        opened.releases(SCALE)

    assert two.asked()[1].count("/v1/tuf/timestamp.json") == 1


def test_manifests_and_yanks_are_asked_of_the_names_registry(two: TwoRegistries) -> None:
    with indexes(two) as opened:
        release = opened.releases(SCALE)[0]
        fetched = opened.fetch_manifest(SCALE, release, release.variants[0])
        why = opened.once_yanked(SCALE, release.version)

    assert (b'"registry":"px.example"' in fetched.data, why) == (True, None)
    assert two.asked()[0] == []


def test_a_registry_may_be_named_for_what_none_claims(two: TwoRegistries) -> None:
    with indexes(two, {BASE: frozenset({PX})}) as opened:
        assert (opened.registry_of(BASE), versions(opened, BASE)) == (PX, ["9.0.0"])

    assert two.asked()[0] == []


def test_what_two_claim_is_asked_of_none(two: TwoRegistries) -> None:
    two.pin("px-scale", "base")

    found = refusal(two, SCALE)

    assert isinstance(found, AmbiguousSource)
    assert found.message == (
        "`px-scale` is claimed by `team.example` (`px-scale`) and `px.example` (`px-*`): a name belongs to exactly one "
        "registry, so none was asked"
    )
    assert two.asked() == ([], [])


def test_a_name_that_its_registry_lacks_is_not_found_however_many_others_have_it(two: TwoRegistries) -> None:
    two.own.publish("px-new")

    found = refusal(two, PluginName("px-new"))

    assert isinstance(found, NotFound)
    assert found.message == "the registry `px.example` has no plugin `px-new`"
    assert found.context == {"name": "px-new", "registry": "px.example"}
    assert two.asked()[0] == []


def test_a_name_that_the_own_registry_lacks_may_be_one_that_nobody_claims(two: TwoRegistries) -> None:
    two.px.publish("lens")

    found = refusal(two, PluginName("lens"))

    assert isinstance(found, NotFound)
    assert (found.message, found.hint) == (
        "the registry `team.example` has no plugin `lens`",
        "check how it is spelled, or ask whoever runs the registry; or, if it belongs to another registry, add it to "
        "the "
        "`names` of that one",
    )
    assert two.asked()[1] == []


@dataclass(frozen=True, kw_only=True)
class Failure:
    """What a registry answers to everything, and the refusal that comes of it; `{url}` is where it answers."""

    status: int
    body: str = "{}"
    content_type: str = "application/problem+json"
    kind: type[SpmError]
    message: str


FAILURES = {
    "401": Failure(
        status=401,
        body='{"type": "auth", "detail": "a token is needed"}',
        kind=AuthRequired,
        message="registry `px.example`: a token is needed",
    ),
    "403": Failure(
        status=403,
        body='{"type": "scope", "detail": "not for you"}',
        kind=ScopeRefused,
        message="registry `px.example`: not for you",
    ),
    "404": Failure(
        status=404,
        body='{"type": "not-found", "detail": "nothing is here"}',
        kind=BadResponse,
        message="registry `px.example`: the registry has no `1.root.json`, the root that loader.conf pins",
    ),
    "500": Failure(
        status=500,
        content_type="text/plain",
        kind=BadResponse,
        message="registry `px.example`: `{url}/v1/tuf/1.root.json` answered 500 without saying why",
    ),
    "garbage": Failure(
        status=200,
        body="<html>",
        kind=Mix,
        message="registry `px.example`: `1.root.json` of the registry has the digest "
        "sha256:b7d082ee12e91b756ea22e8513b8594eebcf5d39fab813da3cb55794dc888ad7, but loader.conf pins sha256:{pin}",
    ),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_a_failure_of_one_registry_is_no_question_to_another(two: TwoRegistries, failure: Failure) -> None:
    with failing_server(failure.status, failure.body.encode(), failure.content_type) as url:
        two.pin_px("px-*", url=url)

        found = refusal(two, SCALE)

    pin = two.px.index.root_pin.sha256
    assert type(found) is failure.kind
    assert found.message == failure.message.replace("{url}", url).replace("{pin}", pin)
    assert found.context["registry"] == PX
    assert two.asked() == ([], [])


def test_a_registry_that_is_down_is_no_question_to_another(two: TwoRegistries) -> None:
    with socket.socket() as taken:  # bound and not listening: whoever connects is refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        two.pin_px("px-*", url=url)

        found = refusal(two, SCALE)

    assert isinstance(found, RegistryUnreachable)
    assert (found.message, found.hint) == (
        f"registry `px.example`: the registry at `{url}` cannot be reached: Connection refused",
        "check `registry.url` in registries/px.example/loader.conf and whether the registry is up",
    )
    assert two.asked() == ([], [])


def test_a_registry_that_does_not_answer_in_time_is_no_question_to_another(two: TwoRegistries) -> None:
    def slow(conf: LoaderConf) -> RegistryClient:
        raise RegistryTimeout(f"the registry at `{conf.registry_url}` did not answer in time")

    with (
        pytest.raises(RegistryTimeout) as caught,
        staging(two.layout) as scratch,
        RegistryIndexes(two.layout, two.conf, slow, scratch=scratch, now=datetime.now(UTC)) as opened,
    ):
        opened.releases(SCALE)

    assert caught.value.context == {"registry": PX}
    assert two.asked() == ([], [])


def test_a_failure_of_the_own_registry_says_whose_it_is_and_asks_no_other(two: TwoRegistries) -> None:
    two.own.index.files.pop("timestamp.json")

    found = refusal(two, BASE)

    assert isinstance(found, BadResponse)
    assert found.context["registry"] == "team.example"
    assert two.asked()[1] == []


def test_what_is_foreseen_is_asked_of_open_registries_alone(two: TwoRegistries) -> None:
    two.px.publish("px-blur")
    with indexes(two) as opened:
        opened.prefetch([SCALE, BASE])
        before = two.asked()
        opened.releases(SCALE)
        two.asked()
        opened.prefetch([PluginName("px-blur"), BASE])
        after = two.asked()

    assert (before, after[0]) == (([], []), [])


def test_a_folder_that_is_no_registrys_stops_everything(two: TwoRegistries) -> None:
    (two.root / "registries" / "Px.example").mkdir()

    found = refusal(two, BASE)

    assert isinstance(found, ConfigSyntax)
    assert two.asked() == ([], [])


def installed_from_px(two: TwoRegistries, digest: str, *, registry: str | None = PX) -> None:
    """Let the store have `px-scale` of the other registry, or of the own one, by its entry alone."""
    entry = InstalledEntry(
        name=SCALE,
        version=Version.parse("1.0.0"),
        release="1.0.0",
        manifest_sha256=digest,
        type=PluginType.EXT,
        keyids=(two.px.keyid,),
        requested=True,
        registry=registry,
    )
    nothing = Generation(number=0, registry="team.example", created="never")
    with staging(two.layout) as scratch:
        commit(two.layout, nothing.following(created="2026-01-31T12:00:00Z", plugins=(entry,)), scratch=scratch)


def test_a_release_that_is_another_than_the_one_installed_is_a_fork(two: TwoRegistries) -> None:
    installed_from_px(two, "0" * 64)

    assert isinstance(refusal(two, SCALE), Fork)


@pytest.mark.parametrize(("names", "registry"), [("px-*", PX), ("other-*", "team.example")])
def test_what_is_installed_from_one_is_no_fork_of_another(two: TwoRegistries, names: str, registry: str) -> None:
    """As where a project is locked, in which what is installed has no say."""
    installed_from_px(two, "0" * 64, registry=None if registry == PX else PX)
    two.pin_px(names)

    with indexes(two) as opened:
        opened.stand_on(Generation(number=0, registry="team.example", created=""))
        assert (opened.registry_of(SCALE), len(versions(opened, SCALE))) == (registry, 1)


def test_a_plugin_stays_with_the_registry_that_it_was_installed_from(two: TwoRegistries) -> None:
    installed_from_px(two, two.px.shards["px-scale"].releases[0].variants[0].manifest_sha256)
    two.pin_px("other-*")

    with indexes(two) as opened:
        assert (opened.registry_of(SCALE), versions(opened, SCALE)) == (PX, ["1.0.0"])

    assert two.asked()[0] == []


def test_a_plugin_is_not_taken_over_by_another_registry(two: TwoRegistries) -> None:
    installed_from_px(two, "0" * 64)
    two.pin("px-*")
    two.pin_px("other-*")

    found = refusal(two, SCALE)

    assert isinstance(found, AmbiguousSource)
    assert found.message == (
        "`px-scale` is installed from the registry `px.example`, and would now come from `team.example`, where that "
        "name is another plugin"
    )
    assert two.asked() == ([], [])


def test_what_is_learnt_of_each_is_kept_in_its_own_place_if_the_command_succeeds(two: TwoRegistries) -> None:
    with indexes(two) as opened, staging(two.layout) as scratch:
        opened.releases(SCALE)
        opened.releases(BASE)
        before = read_trust_state(two.root), read_trust_state(two.px_layout.root)
        with opened.committing(scratch):
            pass

    after = read_trust_state(two.root), read_trust_state(two.px_layout.root)
    assert before == (None, None)
    assert [state and state.registry for state in after] == ["team.example", PX]


def test_what_is_learnt_is_kept_of_none_if_the_command_fails(two: TwoRegistries) -> None:
    before = snapshot(two.root)

    with pytest.raises(ZeroDivisionError):
        failing_command(two)

    assert snapshot(two.root) == before


def failing_command(two: TwoRegistries) -> None:
    """Ask both registries, and then fail."""
    with indexes(two) as opened, staging(two.layout) as scratch:
        opened.releases(SCALE)
        opened.releases(BASE)
        with opened.committing(scratch):
            raise ZeroDivisionError


def test_nothing_is_kept_of_a_registry_that_was_not_asked(two: TwoRegistries) -> None:
    with indexes(two) as opened, staging(two.layout) as scratch:
        opened.releases(SCALE)
        with opened.committing(scratch):
            pass

    assert read_trust_state(two.root) is None
    assert read_trust_state(two.px_layout.root) is not None
