"""Search: what a registry says of its plugins, by words, device and batch policy. Nothing in it is proven.

No key signs an answer, so it is shown and no more: whatever installs by a name goes through the signed index.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar
from urllib.parse import urlencode

from manifests import fields
from manifests.errors import BadResponse, NotFound, SpmError
from manifests.fields import Fields
from manifests.names import PluginName, parse_name
from manifests.versions import Version

SEARCH = "/v1/search"
MAX_RESULTS = 100
MAX_WORDS = 8
MAX_QUERY = 200
_MAX_NEAR = 3

T = TypeVar("T")


class Asked(Protocol):
    """What a search needs of a registry's client."""

    def call(self, method: str, path: str, body: Any = None, *, authorized: bool = True) -> dict[str, Any]:
        """Send a request and return the JSON that comes back: `client.call("GET", "/v1/search?q=mel")`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What is looked for; `near` is a spelling whose nearest names are wanted too."""

    words: tuple[str, ...] = ()
    device: str | None = None
    batch: str | None = None
    limit: int = 20
    near: str | None = None

    @property
    def path(self) -> str:
        asked: dict[str, Any] = {"q": " ".join(self.words), "device": self.device, "batch": self.batch}
        given = {name: value for name, value in asked.items() if value} | {"limit": self.limit}
        return f"{SEARCH}?{urlencode(given | ({'near': self.near} if self.near else {}))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One plugin as the registry tells of it: its newest release; `yanked` is the reason where all are."""

    name: PluginName
    version: Version
    type: str
    summary: str
    devices: tuple[str, ...]
    batch: str | None
    yanked: str | None

    @classmethod
    def read(cls, reader: Fields) -> "Hit":
        return cls(
            name=reader.required("name", parse_name),
            version=reader.required("version", Version.parse),
            type=reader.required("type", fields.one_of("core", "ext")),
            summary=reader.required("summary", _text_or_nothing),
            devices=reader.required("devices", fields.many(fields.text, 16)),
            batch=reader.required("batch", _or_none(fields.text)),
            yanked=reader.required("yanked", _or_none(fields.text)),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "version": self.version.text,
            "type": self.type,
            "summary": self.summary,
            "devices": list(self.devices),
            "batch": self.batch,
            "yanked": self.yanked,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An answer: plugins, nearest first; whether there are more; the names nearest to a misspelt one."""

    hits: tuple[Hit, ...]
    is_cut: bool
    near: tuple[PluginName, ...]


def search(client: Asked, query: Query, registry: str) -> Found:
    """Ask a registry.

    Raises: BadResponse for an answer that is none, or from a registry that has no search; the refusals of transport.
    """
    try:
        answer = client.call("GET", query.path, authorized=False)
    except NotFound as error:
        raise BadResponse(
            f"the registry `{registry}` has no search",
            hint="it runs an older spm-registry: `spm info NAME` shows a plugin whose name you know",
        ) from error
    try:
        return _read(answer, query)
    except SpmError as error:
        raise BadResponse(
            f"the registry `{registry}` answered a search with what is no answer: {error.message}",
            hint="check `registry.url` in loader.conf, or ask the registry's administrator",
        ) from error


def _read(answer: dict[str, Any], query: Query) -> Found:
    with fields.document("the answer") as problems:
        reader = Fields(answer, "", problems)
        reader.required("_type", fields.one_of("spm.search/1"))
        return Found(
            hits=reader.required("results", fields.many(_open(Hit.read), query.limit)),
            is_cut=reader.required("is_cut", fields.boolean),
            near=reader.optional("near", fields.many(parse_name, _MAX_NEAR)) or (),
        )


def _open(read: Callable[[Fields], T]) -> Callable[[Any], T]:
    """Return a reader of tables that may have members of a newer registry."""

    def read_table(value: Any) -> T:
        with fields.document("a result") as problems:
            return read(Fields(value, "", problems))

    return read_table


def _or_none(read: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else read(value)


def _text_or_nothing(value: Any) -> str:
    return "" if value == "" else fields.text(value)
