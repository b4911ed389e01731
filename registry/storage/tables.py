"""The tables of a registry, as SQLAlchemy metadata. Holds no queries."""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

# One row. `serial` counts every change a reader can see; publishes queue on its row lock.
registry = Table(
    "registry",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("serial", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

plugins = Table(
    "plugins",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("confusable", String(256), nullable=False, unique=True),
    Column("type", String(8), nullable=False),
)

owners = Table(
    "owners",
    metadata,
    Column("name", ForeignKey("plugins.name"), primary_key=True),
    Column("label", String(128), primary_key=True),
)

releases = Table(
    "releases",
    metadata,
    Column("name", ForeignKey("plugins.name"), primary_key=True),
    Column("version", String(128), primary_key=True),
    # The version without `+build`: two releases that differ only there cannot both exist.
    Column("precedence", String(128), nullable=False),
    Column("yanked", Text, nullable=True),
    Column("published_by", String(128), nullable=False),
    Column("published_at", BigInteger, nullable=False),
    Column("serial", BigInteger, nullable=False),
    UniqueConstraint("name", "precedence"),
)

manifests = Table(
    "manifests",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("version", String(128), nullable=False),
    Column("data", LargeBinary, nullable=False),
    ForeignKeyConstraint(["name", "version"], ["releases.name", "releases.version"]),
)

signatures = Table(
    "signatures",
    metadata,
    Column("manifest_sha256", ForeignKey("manifests.sha256"), primary_key=True),
    Column("file_name", String(96), primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

# A row here makes a blob readable: a file without one belongs to no published release.
blobs = Table(
    "blobs",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
)

shards = Table(
    "shards",
    metadata,
    Column("name", ForeignKey("plugins.name"), primary_key=True),
    Column("data", LargeBinary, nullable=False),
    Column("etag", String(80), nullable=False),
)

# What a search looks through: each plugin's newest release, drawn from its shard whenever that is written.
listings = Table(
    "listings",
    metadata,
    Column("name", ForeignKey("plugins.name"), primary_key=True),
    Column("version", String(128), nullable=False),
    Column("type", String(8), nullable=False),
    Column("summary", Text, nullable=False),
    # Between commas, as in `,cuda:sm_86,cpu,`, so that a device is found whole.
    Column("devices", Text, nullable=False),
    Column("batch", String(16), nullable=True),
    Column("yanked", Text, nullable=True),
    # Name and summary in lower case: databases differ in what LIKE takes for the same letter.
    Column("words", Text, nullable=False),
)

# TUF metadata and the keyring document, each version as served. Of each role one row is not replaced: the current one.
tuf_files = Table(
    "tuf_files",
    metadata,
    Column("role", String(32), primary_key=True),
    Column("version", BigInteger, primary_key=True),
    Column("sha256", String(64), nullable=False),
    # When an online role has lived half its life; what is signed offline is never renewed by itself.
    Column("renew_at", BigInteger, nullable=True),
    Column("expires_at", BigInteger, nullable=True),
    Column("replaced_at", BigInteger, nullable=True),
    # Last, so that looking for rows reads no data.
    Column("data", LargeBinary, nullable=False),
    Index(None, "replaced_at"),
)

# Shards that were replaced, for clients which hold the metadata of a moment ago.
shard_files = Table(
    "shard_files",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("name", String(64), nullable=False),
    Column("replaced_at", BigInteger, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index(None, "replaced_at"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("mac", String(64), nullable=False, unique=True),
    Column("label", String(128), nullable=False),
    Column("role", String(16), nullable=False),
    Column("names", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("last_used_at", BigInteger, nullable=True),
)

uploads = Table(
    "uploads",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("token_id", ForeignKey("tokens.id"), nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    # The serial of the release it became: a commit whose answer was lost can be asked again.
    Column("committed", BigInteger, nullable=True),
    UniqueConstraint("token_id", "fingerprint"),
)

upload_files = Table(
    "upload_files",
    metadata,
    Column("upload_id", ForeignKey("uploads.id", ondelete="CASCADE"), primary_key=True),
    Column("sha256", String(64), primary_key=True),
    Column("size", BigInteger, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("at", BigInteger, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("action", String(32), nullable=False),
    Column("subject", String(256), nullable=False),
    Column("detail", Text, nullable=False),
    Column("serial", BigInteger, nullable=False),
)
