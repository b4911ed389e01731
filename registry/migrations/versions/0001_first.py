"""The first schema: plugins, releases, manifests, blobs, shards, tokens, uploads and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create every table."""
    _create_site()
    _create_plugins()
    _create_content()
    _create_uploads()


def _create_site() -> None:
    op.create_table(
        "registry",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("serial", sa.BigInteger, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_registry"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("mac", sa.String(64), nullable=False),
        sa.Column("label", sa.String(128), nullable=False),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("names", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("last_used_at", sa.BigInteger, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("mac", name="uq_tokens_mac"),
    )
    op.create_table(
        "audit",
        sa.Column("number", sa.Integer, autoincrement=True, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("actor", sa.String(128), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("subject", sa.String(256), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("serial", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )


def _create_plugins() -> None:
    op.create_table(
        "plugins",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("confusable", sa.String(256), nullable=False),
        sa.Column("type", sa.String(8), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_plugins"),
        sa.UniqueConstraint("confusable", name="uq_plugins_confusable"),
    )
    op.create_table(
        "owners",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("label", sa.String(128), nullable=False),
        sa.PrimaryKeyConstraint("name", "label", name="pk_owners"),
        sa.ForeignKeyConstraint(["name"], ["plugins.name"], name="fk_owners_name"),
    )
    op.create_table(
        "releases",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("version", sa.String(128), nullable=False),
        sa.Column("precedence", sa.String(128), nullable=False),
        sa.Column("yanked", sa.Text, nullable=True),
        sa.Column("published_by", sa.String(128), nullable=False),
        sa.Column("published_at", sa.BigInteger, nullable=False),
        sa.Column("serial", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", "version", name="pk_releases"),
        sa.ForeignKeyConstraint(["name"], ["plugins.name"], name="fk_releases_name"),
        sa.UniqueConstraint("name", "precedence", name="uq_releases_name_precedence"),
    )


def _create_content() -> None:
    op.create_table(
        "manifests",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("version", sa.String(128), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_manifests"),
        sa.ForeignKeyConstraint(
            ["name", "version"], ["releases.name", "releases.version"], name="fk_manifests_name_version"
        ),
    )
    op.create_table(
        "signatures",
        sa.Column("manifest_sha256", sa.String(64), nullable=False),
        sa.Column("file_name", sa.String(96), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("manifest_sha256", "file_name", name="pk_signatures"),
        sa.ForeignKeyConstraint(["manifest_sha256"], ["manifests.sha256"], name="fk_signatures_manifest_sha256"),
    )
    op.create_table(
        "blobs",
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_blobs"),
    )
    op.create_table(
        "shards",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("etag", sa.String(80), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_shards"),
        sa.ForeignKeyConstraint(["name"], ["plugins.name"], name="fk_shards_name"),
    )


def _create_uploads() -> None:
    op.create_table(
        "uploads",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("token_id", sa.String(16), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.Column("committed", sa.BigInteger, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_uploads"),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name="fk_uploads_token_id"),
        sa.UniqueConstraint("token_id", "fingerprint", name="uq_uploads_token_id_fingerprint"),
    )
    op.create_table(
        "upload_files",
        sa.Column("upload_id", sa.String(32), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("size", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("upload_id", "sha256", name="pk_upload_files"),
        sa.ForeignKeyConstraint(["upload_id"], ["uploads.id"], name="fk_upload_files_upload_id", ondelete="CASCADE"),
    )
