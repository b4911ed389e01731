"""An install that was cut, killed or stopped in the middle of a blob: the next one asks for the missing rest alone."""

import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e.commands import SECONDS, SPM, Client
from tests.e2e.snapshots import snapshot
from tests.e2e.team import Team
from tests.fakes import tampering_proxy
from tests.fakes.tampering_proxy import Reply, TamperingProxy

pytestmark = pytest.mark.e2e

INSTALL = ("install", "heavy")
WEIGHTS = 3 << 20
PIECE = 64 << 10
SOUND = "verified   heavy 1.0.0\n"


@pytest.fixture
def weights(team: Team) -> str:
    """Return the path of the big blob of `heavy`."""
    sha256 = team.shard("heavy").releases[-1].variants[0].manifest_sha256
    manifest = team.fetch(f"/v1/manifests/{sha256}").decode()
    return "/v1/blobs/" + manifest.partition('"path":"weights.bin","sha256":"')[2][:64]


def slowly(reply: Reply) -> Reply:
    """Send a piece every 20 ms: a second for the whole."""

    def pieces() -> Iterator[bytes]:
        data = reply.data
        for start in range(0, len(data), PIECE):
            time.sleep(0.02)
            yield data[start : start + PIECE]

    return replace(reply, body=pieces())


def part(client: Client) -> Path | None:
    folder = client.store / "partial"
    found = list(folder.iterdir()) if folder.is_dir() else []
    return found[0] if found else None


def asked_for(wire: TamperingProxy, path: str) -> list[str | None]:
    return [request.headers.get("range") for request in wire.seen if request.path == path]


def require_whole(client: Client, wire: TamperingProxy, path: str, held: int) -> None:
    """Assert that the next install asks for the blob from a byte on, once, and ends as if nothing had been."""
    wire.mend()
    wire.seen.clear()

    client.spm(*INSTALL).ok()

    assert asked_for(wire, path) == [f"bytes={held}-"]
    assert [name for name in ("partial", "tmp") if (client.store / name).exists()] == []
    assert client.told("verify").ok().out == SOUND


@pytest.mark.parametrize("strike", [signal.SIGKILL, signal.SIGINT], ids=["killed", "stopped"])
def test_an_install_that_ends_in_the_middle_of_a_blob_is_gone_on_with(
    wire: TamperingProxy, wired: Client, weights: str, strike: signal.Signals
) -> None:
    wire.alter(weights, slowly)
    # Whoever runs the tests in the background has let them ignore SIGINT, which a child inherits.
    words = ["env", "--default-signal=INT", SPM, *INSTALL]
    process = subprocess.Popen(words, env=wired.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ends = time.monotonic() + SECONDS
    while not ((path := part(wired)) and path.stat().st_size > WEIGHTS // 4):
        assert process.poll() is None, "the install has ended before its middle"
        assert time.monotonic() < ends
        time.sleep(0.005)

    process.send_signal(strike)
    began = time.monotonic()
    process.wait(SECONDS)

    assert time.monotonic() - began < 3
    assert wired.installed() == {}
    path = part(wired)
    assert path is not None
    held = path.stat().st_size
    assert WEIGHTS // 4 < held < WEIGHTS
    require_whole(wired, wire, weights, held)


def test_an_install_whose_blob_is_cut_ever_again_says_so_and_is_gone_on_with(
    wire: TamperingProxy, wired: Client, weights: str
) -> None:
    before = snapshot(wired.home)
    wire.alter(weights, tampering_proxy.cut(100_000, is_open=True))

    refusal = wired.spm(*INSTALL)

    refusal.refused(31, "bad-response", f"`{wire.url}{weights}` was cut off before its end", "run the command again")
    held = [100_000 * number for number in range(10)]
    assert asked_for(wire, weights) == [None, *(f"bytes={at}-" for at in held[1:9])]
    # Nothing but what has come of the blob is new.
    after = snapshot(wired.home)
    path = part(wired)
    assert path is not None
    assert path.stat().st_size == held[9]
    names = {"store/partial", f"store/partial/{path.name}"}
    assert after.keys() - before.keys() == names
    assert {name: value for name, value in after.items() if name not in names} == before
    require_whole(wired, wire, weights, held[9])


def test_a_blob_may_lie_where_the_registry_points(
    team: Team, wire: TamperingProxy, wired: Client, weights: str
) -> None:
    with TamperingProxy(team.url) as store:
        wire.alter(weights, tampering_proxy.redirect(f"{store.url}{weights}?signature=secret"))

        wired.spm(*INSTALL).ok()

        assert store.paths == [f"{weights}?signature=secret"]
        assert not {"authorization", "cookie"} & store.seen[0].headers.keys()
    assert wired.told("verify").ok().out == SOUND
