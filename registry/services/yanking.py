"""Yank and unyank: the one change that a published release may see. Removes nothing."""

from dataclasses import dataclass

from manifests.errors import NotFound, ScopeRefused, SpmError, UsageError
from manifests.fields import text
from manifests.names import parse_name
from manifests.versions import Version
from registry.services.index_signing import sign_shard
from registry.services.policy import Caller, scope_problem
from registry.services.shards import read_shard, write_shard
from registry.storage.records import Records
from registry.storage.rows import AuditRow, ReleaseRow
from registry.storage.site import Site

MAX_REASON = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Yanked:
    """A release as it stands after the call: `reason` is None where it is offered to everyone."""

    name: str
    version: str
    reason: str | None
    serial: int


def yank(site: Site, name: str, version: str, reason: str, caller: Caller, now: int) -> Yanked:
    """Stop offering a release to new resolutions; lockfiles that pin it still get it.

    Raises:
        NotFound: there is no such release.
        ScopeRefused: it is not the caller's.
        UsageError: the reason is empty or too long.
    """
    return _set(site, name, version, _checked(reason), caller, now)


def unyank(site: Site, name: str, version: str, caller: Caller, now: int) -> Yanked:
    """Offer a yanked release again.

    Raises:
        NotFound: there is no such release.
        ScopeRefused: it is not the caller's.
    """
    return _set(site, name, version, None, caller, now)


def _set(site: Site, name: str, version: str, reason: str | None, caller: Caller, now: int) -> Yanked:
    parsed = Version.parse(version)
    with site.database.writing() as records:
        records.await_turn()
        release = _release(records, parse_name(name), parsed)
        _require_scope(records, release, caller)
        if release.yanked == reason:
            return Yanked(name=name, version=version, reason=reason, serial=records.serial())
        serial = records.next_serial()
        records.set_yanked(name, version, reason)
        write_shard(records, read_shard(records, name).with_yanked(parsed, reason), now)
        sign_shard(site, records, name, now)
        _record(records, release, reason, caller, now, serial)
    return Yanked(name=name, version=version, reason=reason, serial=serial)


def _release(records: Records, name: str, version: Version) -> ReleaseRow:
    release = records.release(name, version.text)
    if release is None:
        raise NotFound(f"`{name}` {version} is not published here", hint=f"see `spm info {name}`")
    return release


def _require_scope(records: Records, release: ReleaseRow, caller: Caller) -> None:
    problem = scope_problem(caller, release.name, records.owners(release.name))
    if problem is not None:
        raise ScopeRefused(problem, hint="ask an admin or an owner of the plugin", name=release.name)


def _record(records: Records, release: ReleaseRow, reason: str | None, caller: Caller, now: int, serial: int) -> None:
    action = "unyank" if reason is None else "yank"
    subject = f"{release.name} {release.version}"
    row = AuditRow(at=now, actor=caller.label, action=action, subject=subject, detail=reason or "", serial=serial)
    records.add_audit(row)


def _checked(reason: str) -> str:
    try:
        plain = text(reason)
    except SpmError as error:
        raise UsageError("a yank needs a reason, in plain text on one line") from error
    if len(plain) > MAX_REASON:
        raise UsageError(f"the reason has {len(plain)} characters, more than the {MAX_REASON} allowed")
    return plain
