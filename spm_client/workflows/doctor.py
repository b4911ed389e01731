"""Doctor: can plugins be installed and run here, told point by point? Changes nothing and asks no registry."""

import enum
import pwd
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from keys.keyring import LoaderConf
from keys.trust_state import MOMENT, TrustState, read_trust_state
from manifests.errors import ClockSuspect, RootExpired, SpmError
from runtime.generation import current_generation
from runtime.guard import require_guarded_store
from runtime.installed import TrustedConf, read_manifest, trusted_conf
from runtime.sandbox import bwrap
from spm_client.render import count
from spm_client.store.layout import Layout
from spm_client.workflows.trust_summary import TrustSummary

T = TypeVar("T")


class Status(enum.Enum):
    """How a point stands: `named` is what is told without having been looked at, `note` asks for nothing."""

    GOOD = "good"
    NAMED = "named"
    NOTE = "note"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One thing that was looked at: `refusal` where a command would be refused for it."""

    about: str
    told: str
    status: Status = Status.GOOD
    refusal: SpmError | None = None

    def to_dict(self) -> dict[str, Any]:
        told = {"about": self.about, "status": self.status.value, "told": self.told}
        return told | (self.refusal.to_dict() if self.refusal else {})


def examine(layout: Layout, *, now: datetime, search_path: str) -> tuple[Point, ...]:
    """Look at all that decides whether plugins can be installed and run, as far as one thing rests on another."""
    found = (*_configuration(layout, now), *_sandbox(search_path))
    if any(point.about == "clock" for point in found):
        return found
    return (Point(about="clock", told=f"reads {now:{MOMENT}}"), *found)


def _configuration(layout: Layout, now: datetime) -> Iterator[Point]:
    conf = _tried(lambda: LoaderConf.read(layout.conf))
    if isinstance(conf, SpmError):
        yield _problem("loader.conf", conf)
        return
    status = layout.conf.stat()
    mode, owner = stat.S_IMODE(status.st_mode), _user(status.st_uid)
    yield Point(about="loader.conf", told=f"{layout.conf} has the mode {mode:04o} and belongs to {owner}")
    yield _store(layout)
    pin = _tried(conf.require_root)
    if isinstance(pin, SpmError):
        yield _problem("root", pin)
        return
    if _is_fresh(layout):
        yield Point(
            about="trust",
            told="nothing learnt yet: the first install or `spm trust init` fetches it",
            status=Status.NOTE,
        )
        return
    yield from _trust(layout, conf, now)
    trusted = _tried(lambda: trusted_conf(layout.root, conf, now))
    if isinstance(trusted, SpmError):
        yield _problem("clock" if isinstance(trusted, ClockSuspect) else "trust", trusted)
        return
    yield from _installed(layout, trusted)


def _user(number: int) -> str:
    if number == 0:
        return "`root`"
    try:
        return f"the user `{pwd.getpwuid(number).pw_name}`"
    except KeyError:
        return f"the user {number}"


def _is_fresh(layout: Layout) -> bool:
    """Tell whether nothing was ever learnt and nothing is installed; what cannot be read is not fresh."""
    state = _tried(lambda: read_trust_state(layout.root))
    generation = _tried(lambda: current_generation(layout.root))
    return state is None and not isinstance(generation, SpmError) and not generation.plugins


def _store(layout: Layout) -> Point:
    refusal = _tried(lambda: require_guarded_store(layout.root))
    if isinstance(refusal, SpmError):
        return _problem("store", refusal)
    return Point(about="store", told=f"{layout.root} can be changed by its owner only")


def _trust(layout: Layout, conf: LoaderConf, now: datetime) -> Iterator[Point]:
    state = _tried(lambda: read_trust_state(layout.root))
    if not isinstance(state, TrustState):
        # That it is not there, or not as it must be, is told by whoever asks for the keyring.
        return
    summary = TrustSummary.of(conf, state)
    yield Point(about="registry", told=f"{summary.registry} at {summary.url}", status=Status.NAMED)
    yield from _root(summary, now)
    yield from _index(summary, now)
    yield Point(about="keyring", told=summary.keyring_text)
    if summary.keyring.core_keys and summary.keyring.core_threshold == 1:
        yield _warning("keyring", "one core key alone can sign core plugins, which start with every host")
    endings = summary.key_endings(now)
    for about, told, keyid in summary.key_rows():
        yield Point(about=about, told=told)
        if keyid is not None and about != "revoked" and keyid in endings:
            yield _warning(about, endings[keyid])


def _root(summary: TrustSummary, now: datetime) -> Iterator[Point]:
    expired = _root_expired(summary, now)
    status = Status.PROBLEM if expired else Status.GOOD
    yield Point(about="root", told=summary.root_text, refusal=expired, status=status)
    for told in () if expired else summary.endings(now):
        yield _warning("root", told)
    if summary.root_threshold == 1:
        yield _warning("root", "one root key alone can change what is trusted; a threshold of 2 would need two holders")


def _index(summary: TrustSummary, now: datetime) -> Iterator[Point]:
    """Tell how old the index is; that it has expired bounds no load, only what is asked for anew."""
    if summary.index_issued is None or summary.index_expires is None:
        yield Point(about="index", told=summary.index_text)
        return
    hours = max(int((now - summary.index_issued).total_seconds()), 0) // 3600
    age = count(hours, "hour") if hours < 48 else count(hours // 24, "day")
    told = f"{summary.index_text}; {age} old"
    if summary.index_expires <= now:
        yield _warning("index", f"{told}, and past its end: the next install needs a newer one")
    else:
        yield Point(about="index", told=told)


def _root_expired(summary: TrustSummary, now: datetime) -> RootExpired | None:
    if datetime.fromisoformat(summary.root_expires) > now:
        return None
    return RootExpired(
        f"the root of `{summary.registry}` expired at {summary.root_expires}, and this clock reads {now:{MOMENT}}",
        hint="if the clock is right, the holders of root keys must sign a new one; `spm trust update` fetches it",
        expires=summary.root_expires,
    )


def _installed(layout: Layout, conf: TrustedConf) -> Iterator[Point]:
    generation = _tried(lambda: current_generation(layout.root))
    if isinstance(generation, SpmError):
        yield _problem("installed", generation)
        return
    refused = 0
    for entry in generation.plugins:
        found = _tried(partial(read_manifest, layout.root, entry, conf))
        if isinstance(found, SpmError):
            refused += 1
            yield _problem("installed", found)
    plugins = count(len(generation.plugins), "plugin")
    sound = len(generation.plugins) - refused
    told = f"{sound} of {plugins} with signatures that count; `spm verify` reads all files"
    yield Point(about="installed", told=told)


def _sandbox(search_path: str) -> Iterator[Point]:
    found = _tried(lambda: bwrap.find(search_path))
    if isinstance(found, SpmError):
        yield _problem("sandbox", found)
    else:
        yield Point(about="sandbox", told=f"{found.path}; each worker tests its layers before a plugin is loaded in it")


def _tried(call: Callable[[], T]) -> T | SpmError:
    try:
        return call()
    except SpmError as refusal:
        return refusal


def _problem(about: str, refusal: SpmError) -> Point:
    return Point(about=about, told=refusal.message, refusal=refusal, status=Status.PROBLEM)


def _warning(about: str, told: str) -> Point:
    return Point(about=about, told=told, status=Status.WARNING)
