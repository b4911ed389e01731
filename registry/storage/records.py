"""Typed reads and writes on one open transaction. Decides nothing: rules are in the services."""

import json
from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, RowMapping, delete, func, insert, select, update

from registry.storage import tables
from registry.storage.listings import Listings
from registry.storage.rows import AuditRow, PluginRow, ReleaseRow, ShardRow, TokenRow, UploadRow
from registry.storage.signed_files import SignedFiles


class Records:
    """What is known inside one transaction. Made by `Database.reading` and `Database.writing`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.signed = SignedFiles(connection)
        self.listings = Listings(connection)

    # The registry itself

    def add_registry(self, registry_id: str, now: int) -> None:
        """Write the one row of a new registry."""
        self._connection.execute(insert(tables.registry).values(id=registry_id, serial=0, created_at=now))

    def registry_id(self) -> str:
        """Return the registry's id."""
        return str(self._connection.execute(select(tables.registry.c.id)).scalar_one())

    def serial(self) -> int:
        """Return the serial of the newest visible change."""
        return int(self._connection.execute(select(tables.registry.c.serial)).scalar_one())

    def await_turn(self) -> None:
        """Queue with all who change what is readable, so that rules see what the one before wrote.

        On SQLite the write transaction has done so already; on PostgreSQL this row's lock does.
        """
        self._connection.execute(select(tables.registry.c.serial).with_for_update()).scalar_one()

    def next_serial(self) -> int:
        """Take the next serial."""
        serial = self.serial() + 1
        self._connection.execute(update(tables.registry).values(serial=serial))
        return serial

    def add_audit(self, row: AuditRow) -> None:
        """Append one line to the audit log."""
        values = {
            "at": row.at,
            "actor": row.actor,
            "action": row.action,
            "subject": row.subject,
            "detail": row.detail,
            "serial": row.serial,
        }
        self._connection.execute(insert(tables.audit).values(**values))

    def first_audit(self, action: str, subject: str) -> int | None:
        """Return when something was first done, if ever."""
        table = tables.audit
        statement = select(func.min(table.c.at)).where(table.c.action == action, table.c.subject == subject)
        at: int | None = self._connection.execute(statement).scalar_one()
        return at

    # Plugins and releases

    def plugin(self, name: str) -> PluginRow | None:
        """Find a plugin by its exact name."""
        return self._one_plugin(tables.plugins.c.name == name)

    def plugin_by_confusable(self, key: str) -> PluginRow | None:
        """Find the plugin that holds this confusable key."""
        return self._one_plugin(tables.plugins.c.confusable == key)

    def _one_plugin(self, condition: ColumnElement[bool]) -> PluginRow | None:
        found = self._connection.execute(select(tables.plugins).where(condition)).mappings().one_or_none()
        return None if found is None else PluginRow(**found)

    def add_plugin(self, row: PluginRow, owner: str) -> None:
        """Write a new name and its first owner."""
        values = {"name": row.name, "confusable": row.confusable, "type": row.type}
        self._connection.execute(insert(tables.plugins).values(**values))
        self._connection.execute(insert(tables.owners).values(name=row.name, label=owner))

    def owners(self, name: str) -> tuple[str, ...]:
        """List the labels that own a name."""
        statement = select(tables.owners.c.label).where(tables.owners.c.name == name).order_by(tables.owners.c.label)
        return tuple(self._connection.execute(statement).scalars())

    def release(self, name: str, version: str) -> ReleaseRow | None:
        """Find a release by its whole version."""
        return self._one_release((tables.releases.c.name == name) & (tables.releases.c.version == version))

    def release_by_precedence(self, name: str, precedence: str) -> ReleaseRow | None:
        """Find the release whose version is this one when `+build` is left out."""
        return self._one_release((tables.releases.c.name == name) & (tables.releases.c.precedence == precedence))

    def release_by_serial(self, serial: int) -> ReleaseRow | None:
        """Find the release that was published with this serial."""
        return self._one_release(tables.releases.c.serial == serial)

    def _one_release(self, condition: ColumnElement[bool]) -> ReleaseRow | None:
        found = self._connection.execute(select(tables.releases).where(condition)).mappings().one_or_none()
        return None if found is None else ReleaseRow(**found)

    def add_release(self, row: ReleaseRow) -> None:
        """Write a new release."""
        values = {
            "name": row.name,
            "version": row.version,
            "precedence": row.precedence,
            "yanked": row.yanked,
            "published_by": row.published_by,
            "published_at": row.published_at,
            "serial": row.serial,
        }
        self._connection.execute(insert(tables.releases).values(**values))

    def count_releases(self) -> int:
        """Count the published releases."""
        return self._connection.execute(select(func.count()).select_from(tables.releases)).scalar_one()

    def set_yanked(self, name: str, version: str, reason: str | None) -> None:
        """Change the one thing of a release that may change."""
        table = tables.releases
        statement = update(table).where(table.c.name == name, table.c.version == version).values(yanked=reason)
        self._connection.execute(statement)

    # Manifests, signatures, blobs, shards

    def add_manifest(self, name: str, version: str, sha256: str, data: bytes, signatures: dict[str, bytes]) -> None:
        """Write one variant's manifest and its signature files."""
        values = {"sha256": sha256, "name": name, "version": version, "data": data}
        self._connection.execute(insert(tables.manifests).values(**values))
        rows = [{"manifest_sha256": sha256, "file_name": file, "data": body} for file, body in signatures.items()]
        self._connection.execute(insert(tables.signatures), rows)

    def manifest(self, sha256: str) -> bytes | None:
        """Return a published manifest's bytes."""
        table = tables.manifests
        return self._connection.execute(select(table.c.data).where(table.c.sha256 == sha256)).scalar_one_or_none()

    def manifest_digests(self, name: str, version: str) -> frozenset[str]:
        """List the digests of a release's manifests."""
        table = tables.manifests
        statement = select(table.c.sha256).where(table.c.name == name, table.c.version == version)
        return frozenset(self._connection.execute(statement).scalars())

    def manifests(self, name: str, version: str) -> tuple[bytes, ...]:
        """Return the bytes of a release's manifests, ordered by digest."""
        table = tables.manifests
        statement = select(table.c.data).where(table.c.name == name, table.c.version == version)
        return tuple(self._connection.execute(statement.order_by(table.c.sha256)).scalars())

    def signature(self, sha256: str, file_name: str) -> bytes | None:
        """Return one signature file of a published manifest."""
        table = tables.signatures
        statement = select(table.c.data).where(table.c.manifest_sha256 == sha256, table.c.file_name == file_name)
        return self._connection.execute(statement).scalar_one_or_none()

    def signatures(self) -> tuple[tuple[str, bytes], ...]:
        """Return the names and bytes of all signature files of published manifests."""
        table = tables.signatures
        rows = self._connection.execute(select(table.c.file_name, table.c.data)).all()
        return tuple((row.file_name, row.data) for row in rows)

    def blob_size(self, sha256: str) -> int | None:
        """Return the size of a blob that a published release holds."""
        table = tables.blobs
        return self._connection.execute(select(table.c.size).where(table.c.sha256 == sha256)).scalar_one_or_none()

    def blob_sizes(self) -> tuple[tuple[str, int], ...]:
        """List the digest and size of every readable blob."""
        found = self._connection.execute(select(tables.blobs.c.sha256, tables.blobs.c.size))
        return tuple((row.sha256, row.size) for row in found)

    def add_blobs(self, sizes: dict[str, int]) -> None:
        """Make blobs readable; those that already are stay as they are."""
        new = [{"sha256": sha, "size": size} for sha, size in sizes.items() if self.blob_size(sha) is None]
        if new:
            self._connection.execute(insert(tables.blobs), new)

    def shard(self, name: str) -> ShardRow | None:
        """Return a plugin's shard as served."""
        table = tables.shards
        found = self._connection.execute(select(table).where(table.c.name == name)).mappings().one_or_none()
        return None if found is None else ShardRow(**found)

    def shard_names(self) -> tuple[str, ...]:
        """List the plugins that have a shard."""
        return tuple(self._connection.execute(select(tables.shards.c.name).order_by(tables.shards.c.name)).scalars())

    def put_shard(self, row: ShardRow) -> None:
        """Replace a plugin's shard."""
        self._connection.execute(delete(tables.shards).where(tables.shards.c.name == row.name))
        self._connection.execute(insert(tables.shards).values(name=row.name, data=row.data, etag=row.etag))

    # Tokens

    def token_by_mac(self, mac: str) -> TokenRow | None:
        """Find a token by the HMAC of its text."""
        found = self._connection.execute(select(tables.tokens).where(tables.tokens.c.mac == mac)).mappings()
        row = found.one_or_none()
        return None if row is None else _token(row)

    def tokens(self) -> tuple[TokenRow, ...]:
        """List every token, oldest first."""
        statement = select(tables.tokens).order_by(tables.tokens.c.created_at, tables.tokens.c.id)
        return tuple(_token(row) for row in self._connection.execute(statement).mappings())

    def add_token(self, row: TokenRow) -> None:
        """Write a new token."""
        values = {
            "id": row.id,
            "mac": row.mac,
            "label": row.label,
            "role": row.role,
            "names": json.dumps(row.names),
            "created_at": row.created_at,
            "expires_at": row.expires_at,
            "last_used_at": row.last_used_at,
        }
        self._connection.execute(insert(tables.tokens).values(**values))

    def touch_token(self, token_id: str, now: int) -> None:
        """Record that a token was used."""
        self._connection.execute(update(tables.tokens).where(tables.tokens.c.id == token_id).values(last_used_at=now))

    def expire_token(self, token_id: str, now: int) -> None:
        """End a token's life now."""
        self._connection.execute(update(tables.tokens).where(tables.tokens.c.id == token_id).values(expires_at=now))

    # Uploads

    def upload(self, upload_id: str) -> UploadRow | None:
        """Find an open upload."""
        return self._one_upload(tables.uploads.c.id == upload_id)

    def upload_by_fingerprint(self, token_id: str, fingerprint: str) -> UploadRow | None:
        """Find the upload that this token opened for the very same manifests."""
        return self._one_upload((tables.uploads.c.token_id == token_id) & (tables.uploads.c.fingerprint == fingerprint))

    def _one_upload(self, condition: ColumnElement[bool]) -> UploadRow | None:
        found = self._connection.execute(select(tables.uploads).where(condition)).mappings().one_or_none()
        return None if found is None else UploadRow(**found)

    def count_uploads(self, token_id: str) -> int:
        """Count a token's unfinished uploads."""
        table = tables.uploads
        statement = select(table.c.id).where(table.c.token_id == token_id, table.c.committed.is_(None))
        return len(self._connection.execute(statement).all())

    def declared_bytes(self, token_id: str) -> int:
        """Sum up what the files of a token's unfinished uploads have by their manifests."""
        uploads, files = tables.uploads, tables.upload_files
        unfinished = (uploads.c.token_id == token_id) & uploads.c.committed.is_(None)
        joined = files.join(uploads, files.c.upload_id == uploads.c.id)
        statement = select(func.coalesce(func.sum(files.c.size), 0)).select_from(joined).where(unfinished)
        return int(self._connection.execute(statement).scalar_one())

    def owned(self, label: str) -> tuple[str, ...]:
        """List the names that a label owns."""
        statement = select(tables.owners.c.name).where(tables.owners.c.label == label).order_by(tables.owners.c.name)
        return tuple(self._connection.execute(statement).scalars())

    def add_upload(self, row: UploadRow, sizes: dict[str, int]) -> None:
        """Write a new upload and the sizes of all its files."""
        values = {
            "id": row.id,
            "token_id": row.token_id,
            "fingerprint": row.fingerprint,
            "body": row.body,
            "expires_at": row.expires_at,
            "committed": row.committed,
        }
        self._connection.execute(insert(tables.uploads).values(**values))
        rows = [{"upload_id": row.id, "sha256": sha, "size": size} for sha, size in sizes.items()]
        if rows:
            self._connection.execute(insert(tables.upload_files), rows)

    def renew_upload(self, upload_id: str, body: bytes, expires_at: int) -> None:
        """Give an upload a newer request body and a new lease."""
        table = tables.uploads
        self._connection.execute(update(table).where(table.c.id == upload_id).values(body=body, expires_at=expires_at))

    def close_upload(self, upload_id: str, serial: int) -> None:
        """Record what an upload became; its request is not needed any more."""
        table = tables.uploads
        self._connection.execute(update(table).where(table.c.id == upload_id).values(committed=serial, body=b""))

    def upload_file_size(self, upload_id: str, sha256: str) -> int | None:
        """Return the declared size of one file of an upload."""
        table = tables.upload_files
        statement = select(table.c.size).where(table.c.upload_id == upload_id, table.c.sha256 == sha256)
        return self._connection.execute(statement).scalar_one_or_none()

    def expired_uploads(self, now: int) -> tuple[str, ...]:
        """List the uploads whose lease has ended."""
        statement = select(tables.uploads.c.id).where(tables.uploads.c.expires_at <= now)
        return tuple(self._connection.execute(statement).scalars())

    def upload_ids(self) -> frozenset[str]:
        """List all uploads."""
        return frozenset(self._connection.execute(select(tables.uploads.c.id)).scalars())

    def remove_uploads(self, upload_ids: Iterable[str]) -> None:
        """Forget uploads and their file tables."""
        ids = list(upload_ids)
        self._connection.execute(delete(tables.upload_files).where(tables.upload_files.c.upload_id.in_(ids)))
        self._connection.execute(delete(tables.uploads).where(tables.uploads.c.id.in_(ids)))


def _token(row: RowMapping) -> TokenRow:
    return TokenRow(**{**row, "names": tuple(json.loads(row["names"]))})
