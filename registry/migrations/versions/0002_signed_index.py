"""The signed index: TUF metadata, the keyring document, and shards that were replaced a moment ago."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "tuf_files",
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("renew_at", sa.BigInteger, nullable=True),
        sa.Column("expires_at", sa.BigInteger, nullable=True),
        sa.Column("replaced_at", sa.BigInteger, nullable=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("role", "version", name="pk_tuf_files"),
    )
    op.create_index("ix_tuf_files_replaced_at", "tuf_files", ["replaced_at"])
    op.create_table(
        "shard_files",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("replaced_at", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_shard_files"),
    )
    op.create_index("ix_shard_files_replaced_at", "shard_files", ["replaced_at"])
