"""Search: what of each plugin is looked through, and what is found. Signs nothing: an answer is a hint, not trust.

1. Whenever a shard is written, the plugin's newest release is drawn from it into its listing.
2. A question is held to its bounds before the database is asked.
3. Nearest spellings are looked for among a bounded set of names.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from manifests.batching import BatchMode
from manifests.devices import Device, parse_device
from manifests.errors import UsageError
from manifests.fields import one_of
from manifests.index import ReleaseEntry, Shard
from manifests.names import MAX_NAME_LENGTH, confusable_key, fold
from registry.services.spelling import allowed, nearest
from registry.storage.records import Records
from registry.storage.rows import ListingRow

MAX_QUERY = 200
MAX_WORDS = 8
MAX_RESULTS = 100
DEFAULT_RESULTS = 20
MAX_NEAR = 3
MAX_SUMMARY = 300
_CANDIDATES = 250
_KNOWN = ("q", "device", "batch", "limit", "near")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is looked for; every member is within its bounds. `near` None asks for no spelling."""

    words: tuple[str, ...]
    device: Device | None
    batch: str | None
    limit: int
    near: str | None

    @classmethod
    def parse(cls, given: Mapping[str, list[str]]) -> "Question":
        """Read the parameters of a request.

        Raises:
            UsageError: one is not known, given twice, too long or not of its form.
        """
        for name, values in given.items():
            if name not in _KNOWN:
                known = ", ".join(f"`{one}`" for one in _KNOWN)
                raise UsageError(f"{name!r:.80} is not a parameter of a search: there are {known}")
            if len(values) > 1:
                raise UsageError(f"`{name}` is given {len(values)} times, and a search takes it once")
        only = {name: values[0] for name, values in given.items()}
        return cls(
            words=_words(only.get("q", "")),
            device=parse_device(only["device"]) if "device" in only else None,
            batch=one_of(*(mode.value for mode in BatchMode))(only["batch"]) if "batch" in only else None,
            limit=_limit(only["limit"]) if "limit" in only else DEFAULT_RESULTS,
            near=_near(only["near"]) if "near" in only else None,
        )

    @property
    def is_for_plugins(self) -> bool:
        """Tell whether plugins are asked for; a question for a spelling alone is not."""
        return bool(self.words or self.device or self.batch) or self.near is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Plugins, nearest first; whether there are more than were asked for; the names nearest to a misspelt one."""

    results: tuple[ListingRow, ...]
    is_cut: bool
    near: tuple[str, ...]


def search(records: Records, question: Question) -> Found:
    """Answer a question from the listings."""
    rows: tuple[ListingRow, ...] = ()
    if question.is_for_plugins:
        rows = records.listings.find(
            question.words,
            devices=_meaning(question.device),
            batch=question.batch,
            limit=question.limit + 1,
        )
    near = () if question.near is None else _spelt_like(records, question.near)
    return Found(results=rows[: question.limit], is_cut=len(rows) > question.limit, near=near)


def listing_of(shard: Shard) -> ListingRow | None:
    """Return a plugin as a search shows it: its newest release that is offered, else its newest; None without one."""
    newest = _newest(shard)
    if newest is None:
        return None
    return ListingRow(
        name=shard.name,
        version=newest.version.text,
        type=newest.type.value,
        summary=newest.summary[:MAX_SUMMARY],
        devices=tuple(str(device) for device in newest.device_affinity or ()),
        batch=newest.batch_policy.mode.value if newest.batch_policy else None,
        yanked=newest.yanked,
    )


def _newest(shard: Shard) -> ReleaseEntry | None:
    offered = [release for release in shard.releases if release.yanked is None]
    final = [release for release in offered if not release.version.is_prerelease]
    return next(reversed(final or offered or shard.releases), None)


def _spelt_like(records: Records, name: str) -> tuple[str, ...]:
    """Return what a reader could take the name for, then what a slip could have made it of."""
    twin = records.plugin_by_confusable(confusable_key(name))
    twins = (twin.name,) if twin is not None and twin.name != name else ()
    candidates = records.listings.names_like(name, spread=allowed(name), limit=_CANDIDATES)
    return tuple(dict.fromkeys((*twins, *nearest(name, candidates, limit=MAX_NEAR))))[:MAX_NEAR]


def _meaning(device: Device | None) -> tuple[str, ...]:
    """Return the entries of an affinity that a device is found by: `cuda` by all of cuda, `cuda:0` also by `cuda`."""
    if device is None:
        return ()
    whole = (device.kind, f"{device.kind}:") if device.index is None and device.sm is None else (device.kind,)
    return tuple(dict.fromkeys((str(device), *whole)))


def _words(text: str) -> tuple[str, ...]:
    if len(text) > MAX_QUERY:
        raise UsageError(f"`q` has {len(text)} characters, more than the {MAX_QUERY} allowed")
    words = tuple(dict.fromkeys(text.lower().split()))
    if not all(word.isprintable() for word in words):
        raise UsageError("`q` has characters that cannot be printed")
    if len(words) > MAX_WORDS:
        raise UsageError(f"`q` has {len(words)} words, more than the {MAX_WORDS} allowed")
    return words


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MAX_RESULTS or len(text) > 9:
        raise UsageError(f"`limit` is {text!r:.40}, not a whole number from 1 to {MAX_RESULTS}")
    return int(text)


def _near(text: str) -> str:
    if not 1 <= len(text) <= MAX_NAME_LENGTH or not text.isprintable():
        raise UsageError(f"`near` is not 1 to {MAX_NAME_LENGTH} printable characters")
    return fold(text)
