"""Run records: a line is appended, or it is said that it was not."""

from pathlib import Path

from runtime.run_record import append, timestamp


def test_records_are_lines_of_json(tmp_path: Path) -> None:
    assert [append(tmp_path, {"pid": 1}), append(tmp_path, {"pid": 2})] == ["written", "written"]

    assert (tmp_path / "runs.jsonl").read_text() == '{"_type":"spm.run/1","pid":1}\n{"_type":"spm.run/1","pid":2}\n'


def test_a_record_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    # Whoever the tests run as, a folder cannot be appended to.
    (tmp_path / "runs.jsonl").mkdir()

    assert append(tmp_path, {"pid": 1}) == "not writable"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "runs.jsonl").symlink_to(tmp_path / "elsewhere")

    assert append(tmp_path, {"pid": 1}) == "not writable"
    assert not (tmp_path / "elsewhere").exists()


def test_times_are_utc() -> None:
    assert timestamp(0) == "1970-01-01T00:00:00Z"
