"""Alembic's entry: runs the revisions on the connection it was handed. Opens no connection itself."""

from alembic import context

from registry.storage.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
