"""What a misspelt plugin name may have meant, of a registry or of what is installed. A guess changes no refusal."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from manifests.errors import LimitReached, NotFound, SpmError
from manifests.names import PluginName
from spm_client.adapters.at_once import begin
from spm_client.workflows.search import Asked, Query, search

SECONDS = 2.0


@contextmanager
def suggesting(client: Asked, names: Collection[str], *, registry: str) -> Iterator[None]:
    """Let a refusal of one of these names, for want of such a plugin, say which were near: for two seconds at most.

    `registry` is the client's: what another registry lacks is no question to this one.
    Usage: `with session.client(conf) as client, suggesting(client, {name}, registry=conf.registry_id): ...`.
    """
    try:
        yield
    except NotFound as refusal:
        name, of = refusal.context.get("name"), refusal.context.get("registry")
        is_asked = isinstance(name, str) and name in names and of in {None, registry}
        if is_asked and (near := nearest(client, str(name))):
            refusal.hint = f"did you mean {listed(near)}?"
            refusal.context["near"] = list(near)
        raise


@contextmanager
def suggesting_installed(name: str, installed: Callable[[], Iterable[str]]) -> Iterator[None]:
    """Let a refusal of this name, for want of such a plugin, say which installed ones are near. Asks no registry.

    Usage: `with suggesting_installed(name, lambda: ["mel"]): ...`.
    """
    try:
        yield
    except NotFound as refusal:
        named = {refusal.context[member] for member in ("name", "plugin") if member in refusal.context}
        if "near" not in refusal.context and named <= {name} and (near := nearest_of(name, installed())):
            # Where the refusal does not say that it is for want of the plugin, its own hint may be the right one.
            kept = f"{refusal.hint}; or " if refusal.hint and not named else ""
            refusal.hint = f"{kept}did you mean {listed(near)}?"
            refusal.context["near"] = list(near)
        raise


def not_installed(name: str, installed: Iterable[str]) -> NotFound:
    """Return the refusal of a plugin that is not installed, with those that are near."""
    near = nearest_of(name, installed)
    if not near:
        return NotFound(f"`{name}` is not installed", hint="`spm list` shows what is", name=name)
    hint = f"did you mean {listed(near)}?"
    return NotFound(f"`{name}` is not installed", hint=hint, name=name, near=list(near))


def nearest_of(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return those of the known names that may have been meant, the nearest first; none where it is one of them."""
    from difflib import get_close_matches

    names = list(known)
    return () if name in names else tuple(get_close_matches(name, names))


def nearest(client: Asked, name: str, *, seconds: float = SECONDS) -> tuple[PluginName, ...]:
    """Return the names nearest to one; none where the registry cannot tell in time, whatever the cause."""
    found: list[PluginName] = []

    def ask() -> None:
        try:
            found.extend(search(client, Query(near=name), "").near)
        except SpmError:
            return

    # A thread of its own, since no time-out of a connection bounds a whole answer.
    try:
        (asking,) = begin(1, ask, name="near")
    except LimitReached:
        return ()
    asking.join(seconds)
    return tuple(found)


def listed(names: Collection[str]) -> str:
    """Return names as a question lists them: `a`, `b` or `c`."""
    *others, last = (f"`{name}`" for name in names)
    return f"{', '.join(others)} or {last}" if others else last
