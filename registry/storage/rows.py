"""Rows as values, handed to the services. Knows no SQL and no rules."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginRow:
    """A name that has at least one release."""

    name: str
    confusable: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """One published version of one plugin."""

    name: str
    version: str
    precedence: str
    yanked: str | None
    published_by: str
    published_at: int
    serial: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token as it rests: only the HMAC of its text is kept."""

    id: str
    mac: str
    label: str
    role: str
    names: tuple[str, ...]
    created_at: int
    expires_at: int
    last_used_at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadRow:
    """An upload: the request that opened it, and the serial of the release that it became."""

    id: str
    token_id: str
    fingerprint: str
    body: bytes
    expires_at: int
    committed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRow:
    """A plugin's index shard exactly as it is served."""

    name: str
    data: bytes
    etag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingRow:
    """A plugin as a search shows it: its newest release. `yanked` is the reason where every release is yanked."""

    name: str
    version: str
    type: str
    summary: str
    devices: tuple[str, ...]
    batch: str | None
    yanked: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRow:
    """One version of one file of the signed index, exactly as it is served."""

    role: str
    version: int
    sha256: str
    renew_at: int | None
    expires_at: int | None
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """Who did what, when, and which serial came of it."""

    at: int
    actor: str
    action: str
    subject: str
    detail: str
    serial: int
