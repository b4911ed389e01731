"""A served registry for all tests of the session, and a fresh client with an honest or a tampered wire for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

# Before they are imported, so that a failing assertion in them shows both values.
pytest.register_assert_rewrite("tests.e2e.commands", "tests.e2e.snapshots")

from tests.e2e.commands import Client  # noqa: E402
from tests.e2e.team import Team, founded, publish_plugins  # noqa: E402
from tests.fakes.tampering_proxy import TamperingProxy  # noqa: E402


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """Serve a registry in which everything of `publish_plugins` is published. Tests leave it as it is."""
    folder = tmp_path_factory.mktemp("team")
    with founded(folder) as made:
        publish_plugins(made, folder / "sources")
        yield made


@pytest.fixture
def client(team: Team, tmp_path: Path) -> Client:
    """Give a machine on which nothing is installed."""
    return team.client(tmp_path)


@pytest.fixture
def wire(team: Team) -> Iterator[TamperingProxy]:
    """Give a proxy before the registry, which changes nothing until it is told to."""
    with TamperingProxy(team.url) as proxy:
        yield proxy


@pytest.fixture
def wired(team: Team, wire: TamperingProxy, tmp_path: Path) -> Client:
    """Give a machine that reaches the registry through the proxy only."""
    return team.client(tmp_path, wire.url)
