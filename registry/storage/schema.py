"""The database schema's revisions, through Alembic: bring one up to date, or say which it has."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import registry.migrations
from registry.storage.database import Database


def upgrade(database: Database) -> None:
    """Bring the schema to the newest revision, in one transaction."""
    config = _config()
    with database.connection() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def newest_revision() -> str:
    """Return the revision that this code needs."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    if head is None:
        raise LookupError("registry.migrations holds no revision")
    return head


def is_older(revision: str | None) -> bool:
    """Tell whether a database of this revision is one that this code can bring up to date."""
    known = [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()]
    return revision in known[1:]


def current_revision(database: Database) -> str | None:
    """Return the revision that a database has."""
    with database.connection() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(registry.migrations.__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
