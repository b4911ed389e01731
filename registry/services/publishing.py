"""A publish: opened with signed manifests, filled with files, committed in one transaction. Sends nothing itself."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from manifests.errors import (
    LimitReached,
    NotFound,
    RegistryRefused,
    ScopeRefused,
    SizeMismatch,
    TooBig,
)
from manifests.manifest import Manifest
from manifests.names import confusable_key
from registry.services.index_signing import sign_shard
from registry.services.policy import Caller
from registry.services.problems import Problem, refusal
from registry.services.rules import Candidate, is_published, problems_of, scope_problems
from registry.services.shards import read_shard, write_shard
from registry.services.submission import Submission
from registry.services.times import moment_text
from registry.services.trust import verify_offers
from registry.services.waste import waste_warnings
from registry.storage.parts import PartKey, Source
from registry.storage.records import Records
from registry.storage.rows import AuditRow, PluginRow, ReleaseRow, UploadRow
from registry.storage.site import Site

LEASE_SECONDS = 86_400
MAX_OPEN_UPLOADS = 32
MAX_OPEN_BYTES = 64 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A release that everyone can read. `is_new` tells whether this very call made it so."""

    name: str
    version: str
    serial: int
    is_new: bool
    warnings: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An open upload and the files that it still lacks."""

    upload_id: str
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Bytes on their way in: where they start (None: the whole file), how many, and the file's size if told."""

    source: Source
    start: int | None
    length: int
    total: int | None


def open_upload(site: Site, body: bytes, caller: Caller, now: int) -> Opened | Published:
    """Start publishing a release, or go on with this token's upload of the very same manifests.

    Raises:
        UsageError: the body is malformed.
        PublishRefused, ScopeRefused, VersionExists: all problems at once.
        LimitReached: the token has too many unfinished uploads, or too many bytes in them.
    """
    _clean(site, now)
    with site.database.reading() as records:
        candidate = _examine(site, records, body, caller, now)
        if is_published(records, candidate):
            return _published(records, records.release(candidate.name, candidate.version), is_new=False)
    with site.database.writing() as records:
        upload_id = _register(records, candidate, body, caller, now)
    return Opened(upload_id=upload_id, missing=_missing(site, upload_id, candidate.sizes))


def upload_offset(site: Site, upload_id: str, sha256: str, caller: Caller, now: int) -> tuple[int, int]:
    """Return how many bytes of a file are here, and how many it has."""
    key = _part_key(site, upload_id, sha256, caller, now)
    held = site.blobs.size(sha256)
    return (site.parts.offset(key) if held is None else key.size), key.size


def receive(site: Site, upload_id: str, sha256: str, chunk: Chunk, caller: Caller, now: int) -> tuple[int, int]:
    """Take in bytes of a file; return how many are here now, and how many it has.

    Raises:
        TooBig: there are more than the manifest declares.
        SizeMismatch: the sender thinks of another size, or stopped early.
        DigestMismatch: the whole file is another one.
        RegistryRefused: it does not start where the held bytes end (`offset`), or another sender is at it.
    """
    key = _part_key(site, upload_id, sha256, caller, now)
    _check_chunk(key, chunk)
    if site.blobs.size(sha256) is not None:
        return key.size, key.size
    return site.parts.append(key, chunk.source, start=chunk.start, length=chunk.length), key.size


def commit_upload(site: Site, upload_id: str, caller: Caller, now: int) -> Published:
    """Make a release readable: whole in one transaction, with all rules checked again inside it.

    Raises:
        RegistryRefused: files are missing (`incomplete`).
        PublishRefused, ScopeRefused, VersionExists: all problems at once.
    """
    # 1. Look before anything moves: a refusal here leaves the blob folder as it was.
    with site.database.reading() as records:
        upload = _own_upload(records, upload_id, caller, now)
        if upload.committed is not None:
            return _published(records, records.release_by_serial(upload.committed), is_new=False)
        candidate = _examine(site, records, upload.body, caller, now)
        _require_complete(site, upload_id, candidate)
    # 2. Files first, rows after: a row never names a file that is not there, and a file without a row is not readable.
    _adopt(site, upload_id, candidate)
    # 3. Look again and write, in one transaction.
    with site.database.writing() as records:
        published = _commit(site, records, upload_id, caller, now)
    site.parts.remove_upload(upload_id)
    return published


def _commit(site: Site, records: Records, upload_id: str, caller: Caller, now: int) -> Published:
    records.await_turn()
    upload = _own_upload(records, upload_id, caller, now)
    if upload.committed is not None:
        return _published(records, records.release_by_serial(upload.committed), is_new=False)
    candidate = _examine(site, records, upload.body, caller, now)
    is_new = not is_published(records, candidate)
    if is_new:
        _write_release(site, records, candidate, caller, now)
    published = _published(records, records.release(candidate.name, candidate.version), is_new=is_new)
    records.close_upload(upload_id, published.serial)
    return published


def _examine(site: Site, records: Records, body: bytes, caller: Caller, now: int) -> Candidate:
    offers = verify_offers(site, records, Submission.parse(body), now)
    if not offers.verified:
        raise refusal("the release", offers.problems)
    candidate, problems = Candidate(variants=offers.verified), list(offers.problems)
    if problems or not is_published(records, candidate):
        problems += problems_of(candidate, records=records, blobs=site.blobs, caller=caller)
    else:
        problems += scope_problems(candidate, records, caller)
    if problems:
        raise refusal(f"`{candidate.name}` {candidate.version}", problems)
    return candidate


def _register(records: Records, candidate: Candidate, body: bytes, caller: Caller, now: int) -> str:
    """Write the upload, or renew the one that this token has open for the same manifests; return its id."""
    fingerprint = candidate.fingerprint
    open_one = records.upload_by_fingerprint(caller.token_id, fingerprint)
    if open_one is not None:
        records.renew_upload(open_one.id, body, now + LEASE_SECONDS)
        return open_one.id
    if records.count_uploads(caller.token_id) >= MAX_OPEN_UPLOADS:
        raise LimitReached(
            f"token `{caller.label}` has {MAX_OPEN_UPLOADS} unfinished uploads, which is the most it may have",
            reason="limit:uploads",
            hint=f"finish one; an unfinished upload ends by itself after {LEASE_SECONDS // 3600} hours",
        )
    declared = records.declared_bytes(caller.token_id) + sum(candidate.sizes.values())
    if declared > MAX_OPEN_BYTES:
        raise LimitReached(
            f"with this one, the unfinished uploads of token `{caller.label}` would have {declared} bytes, "
            f"more than the {MAX_OPEN_BYTES} allowed",
            reason="limit:upload-bytes",
            hint=f"finish one; an unfinished upload ends by itself after {LEASE_SECONDS // 3600} hours",
            limit=MAX_OPEN_BYTES,
            got=declared,
        )
    upload_id = secrets.token_hex(16)
    row = UploadRow(
        id=upload_id,
        token_id=caller.token_id,
        fingerprint=fingerprint,
        body=body,
        expires_at=now + LEASE_SECONDS,
        committed=None,
    )
    records.add_upload(row, candidate.sizes)
    return upload_id


def _clean(site: Site, now: int) -> None:
    """Forget uploads whose lease has ended, and folders that no upload knows: their rows come before their files."""
    folders = site.parts.folders()
    with site.database.reading() as records:
        ended, known = records.expired_uploads(now), records.upload_ids()
    if ended:
        with site.database.writing() as records:
            records.remove_uploads(ended)
    for upload_id in (folders - known) | (folders & frozenset(ended)):
        site.parts.remove_upload(upload_id)


def _own_upload(records: Records, upload_id: str, caller: Caller, now: int) -> UploadRow:
    upload = records.upload(upload_id)
    if upload is None or upload.expires_at <= now:
        raise NotFound(
            f"there is no open upload `{upload_id}`",
            hint="publish again: files that are already here are not sent again",
        )
    if upload.token_id != caller.token_id:
        raise ScopeRefused(
            f"upload `{upload_id}` was opened with another token than `{caller.label}`",
            hint="go on with the token that opened it, or publish again with this one",
        )
    return upload


def _part_key(site: Site, upload_id: str, sha256: str, caller: Caller, now: int) -> PartKey:
    with site.database.reading() as records:
        _own_upload(records, upload_id, caller, now)
        size = records.upload_file_size(upload_id, sha256)
    if size is None:
        raise NotFound(f"no manifest of upload `{upload_id}` has a file with sha256:{sha256}")
    return PartKey(upload_id=upload_id, sha256=sha256, size=size)


def _check_chunk(key: PartKey, chunk: Chunk) -> None:
    end = (chunk.start or 0) + chunk.length
    largest = max(end, chunk.total or 0)
    if largest > key.size:
        raise TooBig(
            f"file {key.sha256} has {key.size} bytes by its manifest, and the request speaks of {largest}",
            declared=key.size,
            got=largest,
        )
    if (chunk.total if chunk.start is not None else chunk.length) != key.size:
        raise SizeMismatch(
            f"file {key.sha256} has {key.size} bytes by its manifest, "
            f"and the request says {chunk.total if chunk.start is not None else chunk.length}",
            hint="send a part of a file with `Content-Range: bytes A-B/TOTAL`",
            declared=key.size,
        )


def _missing(site: Site, upload_id: str, sizes: Iterable[str]) -> tuple[str, ...]:
    return tuple(
        sha256
        for sha256 in sorted(sizes)
        if site.blobs.size(sha256) is None and not site.parts.is_whole(upload_id, sha256)
    )


def _require_complete(site: Site, upload_id: str, candidate: Candidate) -> None:
    missing = _missing(site, upload_id, candidate.sizes)
    if missing:
        count = "1 file is" if len(missing) == 1 else f"{len(missing)} files are"
        raise RegistryRefused(
            f"`{candidate.name}` {candidate.version} cannot be committed: {count} missing",
            reason="incomplete",
            hint="send them with `PUT`, then commit again",
            missing=list(missing),
        )


def _adopt(site: Site, upload_id: str, candidate: Candidate) -> None:
    digests = frozenset(candidate.sizes)
    for sha256 in digests:
        if site.blobs.size(sha256) is None:
            site.blobs.adopt(site.parts.whole(upload_id, sha256), sha256)
    site.blobs.settle(digests)


def _write_release(site: Site, records: Records, candidate: Candidate, caller: Caller, now: int) -> None:
    serial = records.next_serial()
    if records.plugin(candidate.name) is None:
        key = confusable_key(candidate.name)
        plugin = PluginRow(name=candidate.name, confusable=key, type=candidate.first.type.value)
        records.add_plugin(plugin, owner=caller.label)
    records.add_release(
        ReleaseRow(
            name=candidate.name,
            version=candidate.version,
            precedence=candidate.precedence,
            yanked=None,
            published_by=caller.label,
            published_at=now,
            serial=serial,
        )
    )
    for variant in candidate.variants:
        signatures = dict(variant.signatures)
        records.add_manifest(candidate.name, candidate.version, variant.sha256, variant.data, signatures)
    records.add_blobs(candidate.sizes)
    entry = candidate.entry(published=moment_text(now))
    shard = read_shard(records, candidate.name).with_release(entry)
    write_shard(records, shard, now)
    sign_shard(site, records, candidate.name, now)
    subject = f"{candidate.name} {candidate.version}"
    detail = " ".join(sorted(candidate.digests))
    records.add_audit(
        AuditRow(at=now, actor=caller.label, action="publish", subject=subject, detail=detail, serial=serial)
    )


def _published(records: Records, release: ReleaseRow | None, *, is_new: bool) -> Published:
    if release is None:
        raise LookupError("a published release has no row")
    manifests = [Manifest.from_bytes(data) for data in records.manifests(release.name, release.version)]
    return Published(
        name=release.name,
        version=release.version,
        serial=release.serial,
        is_new=is_new,
        warnings=waste_warnings(manifests),
    )
