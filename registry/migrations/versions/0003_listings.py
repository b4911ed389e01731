"""Listings: what a search looks through, drawn from the shards that are there."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# As the code of this revision draws a listing; later code may do it otherwise, and this stays as it is.
_MAX_SUMMARY = 300


def upgrade() -> None:
    """Create the table and fill it."""
    table = op.create_table(
        "listings",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("version", sa.String(128), nullable=False),
        sa.Column("type", sa.String(8), nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("devices", sa.Text, nullable=False),
        sa.Column("batch", sa.String(16), nullable=True),
        sa.Column("yanked", sa.Text, nullable=True),
        sa.Column("words", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_listings"),
        sa.ForeignKeyConstraint(["name"], ["plugins.name"], name="fk_listings_name"),
    )
    connection = op.get_bind()
    shards = sa.table("shards", sa.column("name", sa.String), sa.column("data", sa.LargeBinary))
    for name in connection.execute(sa.select(shards.c.name)).scalars().all():
        data = connection.execute(sa.select(shards.c.data).where(shards.c.name == name)).scalar_one()
        if releases := json.loads(data)["releases"]:
            connection.execute(sa.insert(table).values(**_values(name, releases)))


def _values(name: str, releases: list[dict[str, Any]]) -> dict[str, Any]:
    newest = _newest(releases)
    summary = newest.get("summary", "")[:_MAX_SUMMARY]
    policy = newest.get("batch_policy")
    return {
        "name": name,
        "version": newest["version"],
        "type": newest["type"],
        "summary": summary,
        "devices": "".join(f",{device}" for device in newest.get("device_affinity", ())) + ",",
        "batch": policy["mode"] if isinstance(policy, dict) else policy,
        "yanked": newest.get("yanked"),
        "words": f"{name} {summary}".lower(),
    }


def _newest(releases: list[dict[str, Any]]) -> dict[str, Any]:
    offered = [release for release in releases if "yanked" not in release]
    final = [release for release in offered if "-" not in release["version"].partition("+")[0]]
    return (final or offered or releases)[-1]
