"""The schema: the revisions make exactly the tables that the code works with."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, inspect

from registry.storage import schema
from registry.storage.database import Database
from registry.storage.tables import metadata
from tests.registry.team import Team


def test_the_revisions_make_the_tables_of_the_code(tmp_path: Path) -> None:
    database = Database.at(tmp_path / "new.db")

    schema.upgrade(database)

    with database.connection() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    assert schema.current_revision(database) == schema.newest_revision()
    database.close()


def test_the_revisions_make_the_same_keys_and_constraints(tmp_path: Path) -> None:
    database = Database.at(tmp_path / "revisions.db")
    schema.upgrade(database)
    database.close()
    direct = create_engine(f"sqlite:///{tmp_path / 'direct.db'}")
    metadata.create_all(direct)
    revised = create_engine(f"sqlite:///{tmp_path / 'revisions.db'}")

    for name in metadata.tables:
        ours, theirs = inspect(direct), inspect(revised)
        assert ours.get_pk_constraint(name) == theirs.get_pk_constraint(name)
        assert ours.get_unique_constraints(name) == theirs.get_unique_constraints(name)
        assert ours.get_foreign_keys(name) == theirs.get_foreign_keys(name)
        assert str(ours.get_columns(name)) == str(theirs.get_columns(name))

    direct.dispose()
    revised.dispose()


def test_the_database_is_set_up_for_many_readers_and_lasting_writes(team: Team) -> None:
    with team.site.database.connection() as connection:
        pragmas = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        ]

    assert pragmas == ["wal", 2, 1, 15_000]


def test_a_refused_write_leaves_nothing(team: Team) -> None:
    before = team.state()

    try:
        with team.site.database.writing() as records:
            records.next_serial()
            raise KeyError
    except KeyError:
        pass

    assert team.state() == before


def test_what_is_read_is_never_written(team: Team) -> None:
    before = team.state()

    with team.site.database.reading() as records:
        records.next_serial()

    assert team.state() == before
