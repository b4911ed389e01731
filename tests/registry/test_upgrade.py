"""An older registry: brought to today's schema with all it holds, or left as it is."""

from pathlib import Path

import pytest
from sqlalchemy import create_engine

from registry.cli import main
from tests.registry.team import Team, manifest_of, state_of


def _run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def _older(root: Path) -> Path:
    """Leave of a registry's database what the revision before the newest had."""
    engine = create_engine(f"sqlite:///{root / 'registry.db'}")
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE listings")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0002'")
    engine.dispose()
    return root


def test_an_older_registry_is_upgraded_with_all_that_it_holds(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    for version in ("1.0.0", "1.1.0", "2.0.0-rc.1"):
        team.publish(team.admin, manifest_of(version=version)).close()
    before, shard = team.state(), team.ask("GET", "/v1/index/audio-encoder.json").data
    team.site.database.close()
    root = _older(team.root)

    code, out, err = _run(capsys, "upgrade", "--root", root)

    assert (code, out, err) == (0, "", f"Upgraded {root} from the schema 0002 to 0003\n")
    assert state_of(root) == before
    assert team.ask("GET", "/v1/index/audio-encoder.json").data == shard


def test_a_registry_that_is_up_to_date_is_left_as_it_is(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    before = team.state()

    code, out, err = _run(capsys, "upgrade", "--root", team.root)

    assert (code, out) == (0, "")
    assert err == f"{team.root} has the schema 0003 already; nothing was changed\n"
    assert team.state() == before


def test_an_older_registry_is_not_served_and_told_how_it_can_be(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    root = _older(team.root)

    code, out, err = _run(capsys, "serve", "--root", root)

    assert (code, out) == (26, "")
    assert err == (
        f"error[conf-syntax]: {root}/registry.db has schema 0002, and this program needs 0003\n"
        f"  hint: stop the registry, copy its folder, then `spm-registry upgrade --root {root}`\n"
    )


def test_a_registry_of_a_newer_program_is_not_upgraded(capsys: pytest.CaptureFixture[str], team: Team) -> None:
    with team.site.database.connection() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    before = team.state()

    code, _, err = _run(capsys, "upgrade", "--root", team.root)

    assert code == 26
    assert err == (
        f"error[conf-syntax]: {team.root}/registry.db has schema 9999, and this program needs 0003\n"
        "  hint: use the version of spm-registry that made this registry\n"
    )
    assert team.state() == before
