"""Doctor: can plugins be installed and run here, told point by point? Changes nothing and asks no registry."""

import enum
import pwd
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from keys.keyring import LoaderConf
from keys.trust_state import MOMENT, TrustState, read_trust_state
from manifests.errors import ClockSuspect, RootExpired, SpmError
from runtime.generation import current_generation
from runtime.guard import require_guarded_store
from runtime.installed import StoreTrust, read_manifest
from runtime.registries import Registries, of_registry, read_registry, registry_ids, registry_root
from runtime.sandbox import bwrap
from spm_client.render import count
from spm_client.store.generations import damage_beyond
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
    trust = StoreTrust(layout.root, conf, now)
    yield from _learnt(layout, None, conf, trust, now)
    yield from _others(layout, conf, trust, now)
    yield from _installed(layout, trust)


def _learnt(
    layout: Layout, registry: str | None, conf: LoaderConf, trust: StoreTrust, now: datetime
) -> Iterator[Point]:
    """Tell what the store remembers of one registry, None being its own, and whether that may be trusted now."""
    place = Layout(registry_root(layout.root, registry))
    if _is_fresh(layout, registry):
        begin = f"`spm trust init{f' --registry {registry}' if registry else ''}`"
        told = f"nothing learnt yet: the first install or {begin} fetches it"
        yield Point(about="trust", told=told, status=Status.NOTE)
        return
    yield from _trust(place, conf, now)
    trusted = _tried(lambda: trust.of_registry(registry))
    if isinstance(trusted, SpmError):
        yield _problem("clock" if isinstance(trusted, ClockSuspect) else "trust", trusted)


def _others(layout: Layout, own: LoaderConf, trust: StoreTrust, now: datetime) -> Iterator[Point]:
    """Tell of each other registry that the store knows, and of names that no one registry has."""
    ids = _tried(lambda: registry_ids(layout.root))
    if isinstance(ids, SpmError):
        yield _problem("registries", ids)
        return
    confs: dict[str, LoaderConf] = {}
    for registry in ids:
        conf = _tried(partial(_read_other, layout, own, registry))
        if isinstance(conf, SpmError):
            yield _problem(registry, conf)
            continue
        confs[registry] = conf
        names = ", ".join(f"`{name}`" for name in conf.registry_names or ())
        yield Point(about=registry, told=f"at {conf.registry_url}, asked alone for {names}", status=Status.NAMED)
        for point in _learnt(layout, registry, conf, trust, now):
            if point.about != "registry":
                yield replace(point, about=f"{registry}: {point.about}")
    if len(confs) == len(ids):
        yield from _misplaced(layout, Registries(own=own, others=confs))


def _read_other(layout: Layout, own: LoaderConf, registry: str) -> LoaderConf:
    with of_registry(registry):
        conf = read_registry(layout.root, own, registry)
        conf.require_root()
    return conf


def _misplaced(layout: Layout, registries: Registries) -> Iterator[Point]:
    """Tell which installed plugins the next install refuses, since their name belongs to another registry by now."""
    generation = _tried(lambda: current_generation(layout.root))
    for entry in () if isinstance(generation, SpmError) else generation.plugins:
        installed = entry.registry or registries.own.registry_id
        found = _tried(partial(registries.sources.registry_of, entry.name, installed=installed))
        if isinstance(found, SpmError):
            yield _problem("names", found)


def _user(number: int) -> str:
    if number == 0:
        return "`root`"
    try:
        return f"the user `{pwd.getpwuid(number).pw_name}`"
    except KeyError:
        return f"the user {number}"


def _is_fresh(layout: Layout, registry: str | None) -> bool:
    """Tell whether nothing was ever learnt of a registry and nothing is installed from it; damage is not fresh."""
    state = _tried(lambda: read_trust_state(registry_root(layout.root, registry)))
    generation = _tried(lambda: current_generation(layout.root))
    if state is not None or isinstance(generation, SpmError):
        return False
    return all(entry.registry != registry for entry in generation.plugins)


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


def _installed(layout: Layout, trust: StoreTrust) -> Iterator[Point]:
    """Tell which signatures count; nothing of plugins whose registry's trust is a problem, which is told already."""
    generation = _tried(lambda: current_generation(layout.root))
    if isinstance(generation, SpmError):
        yield _problem("installed", generation)
        return
    damage = _tried(lambda: damage_beyond(layout))
    if damage is not None:
        yield _problem("installed", damage)
    judged = refused = 0
    for entry in generation.plugins:
        conf = _tried(partial(trust.of, entry))
        if isinstance(conf, SpmError):
            continue
        judged += 1
        found = _tried(partial(read_manifest, layout.root, entry, conf))
        if isinstance(found, SpmError):
            refused += 1
            yield _problem("installed", found)
    if judged or not isinstance(_tried(lambda: trust.of_registry(None)), SpmError):
        told = f"{judged - refused} of {count(judged, 'plugin')} with signatures that count"
        yield Point(about="installed", told=f"{told}; `spm verify` reads all files")


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
