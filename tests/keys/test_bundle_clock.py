"""By which time a bundle's online roles are judged."""

from datetime import UTC, datetime, timedelta

import pytest

from keys.bundle_clock import online_time
from tests.keys.trust_builders import make_trust

DAY = timedelta(days=1)
ISSUED = datetime(2026, 11, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def timestamp() -> bytes:
    return make_trust(now=ISSUED).files["timestamp.json"]


@pytest.mark.parametrize(
    ("days", "now", "expected"),
    [
        (0, ISSUED + 9 * DAY, ISSUED + 9 * DAY),
        (3, ISSUED + 9 * DAY, ISSUED + 6 * DAY),
        (9, ISSUED + 9 * DAY, ISSUED),
        (30, ISSUED + 9 * DAY, ISSUED),
        (30, ISSUED - DAY, ISSUED - DAY),
    ],
)
def test_the_grace_is_what_loader_conf_says_and_never_reaches_before_the_signing(
    timestamp: bytes, days: int, now: datetime, expected: datetime
) -> None:
    assert online_time(timestamp, days, now) == expected


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"signed":{"_type":"timestamp"}}', b"\xff"])
def test_what_tells_no_time_gets_no_grace(data: bytes) -> None:
    assert online_time(data, 30, ISSUED) == ISSUED


@pytest.mark.parametrize("issued", [7, "yesterday", None])
def test_a_time_in_another_form_gets_no_grace(issued: object) -> None:
    trust = make_trust(now=ISSUED)
    trust.publish_timestamp(lambda timestamp: timestamp.unrecognized_fields.update(issued=issued))

    assert online_time(trust.files["timestamp.json"], 30, ISSUED + 9 * DAY) == ISSUED + 9 * DAY
