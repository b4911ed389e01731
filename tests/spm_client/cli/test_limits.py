"""The bounds of a resolution as they are written: a day ends in UTC, an architecture is NVIDIA's."""

from datetime import UTC, datetime

import pytest

from manifests.errors import UsageError
from spm_client.cli.limits import parse_arch, parse_cutoff

NO_MOMENTS = (
    *("", "yesterday", "2026", "20260131", "2026-W05-6", "2026-02-30", "10000-01-01", "2026-01-31\n"),
    *("2026-01-31T12:00:00", "2026-01-31T12:00Z", "2026-01-31T25:00:00Z", "2026-01-31T12:00:00+99:00"),
)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31t12:00:00z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31 12:00:00.5+02:00", datetime(2026, 1, 31, 10, 0, 0, 500000, tzinfo=UTC)),
    ],
)
def test_a_moment_is_itself(text: str, moment: datetime) -> None:
    assert parse_cutoff(text) == moment


def test_a_day_counts_to_its_end_in_utc_wherever_the_host_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")

    assert parse_cutoff("2026-01-31") == datetime(2026, 1, 31, 23, 59, 59, 999999, tzinfo=UTC)


@pytest.mark.parametrize("text", NO_MOMENTS)
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_cutoff(text)

    assert refused.value.message == f"{text!r} is neither a day nor a moment"
    assert refused.value.hint == (
        "write `--exclude-newer 2026-01-31`, or with time and zone `--exclude-newer 2026-01-31T12:00:00Z`"
    )


@pytest.mark.parametrize("text", ["sm_86", "sm_90a", "sm_100f"])
def test_an_architecture_is_itself(text: str) -> None:
    assert parse_arch(text) == text


@pytest.mark.parametrize("text", ["", "86", "sm_8", "compute_86", "sm_90b", "gfx90a", "sm_86\n"])
def test_another_architecture_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_arch(text)

    assert refused.value.message == f"{text!r} is not an architecture"
    assert refused.value.hint == "write it as builds do: `--force-arch=sm_86`"
