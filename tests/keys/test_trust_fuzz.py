"""Whatever a registry serves: a refresh ends in a state or in a refusal of spm, and only true bytes are believed."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keys.trust import Fetch, import_trust, open_trust, state_of, trust_file
from keys.trust_state import TrustState
from manifests.canonical import canonical_bytes
from manifests.errors import BadResponse, SpmError
from tests.keys.builders import UNHURRIED
from tests.keys.trust_builders import NOW, Trust, make_trust

pytestmark = pytest.mark.property

SHARD, SHARD_BYTES = "index/log-mel.json", b'{"releases":[1,2]}'
Seen = tuple[TrustState, bytes | None]
Change = Callable[[bytes], bytes]


@cache
def honest() -> Trust:
    """Return a registry whose second root, targets and index a host meets for the first time."""
    made = make_trust()
    made.publish_root()
    made.publish_keyring(made.keyring.following())
    made.publish_shard("log-mel", SHARD_BYTES)
    return made


@cache
def held() -> TrustState:
    """Return what a host remembers from before, so that what it holds is tried against what is served."""
    return first_sight(honest())


def first_sight(registry: Trust) -> TrustState:
    state = registry.state
    return TrustState(registry=state.registry, root_sha256=state.root_sha256, roots=state.roots[:1])


def seen(registry: Trust, fetch: Fetch, before: TrustState | None) -> Seen:
    with TemporaryDirectory() as folder:
        index = open_trust(Path(folder), registry.conf(), before, fetch, NOW)
        index.refresh()
        return state_of(index, registry.conf()), index.target(SHARD, 1 << 20)


@cache
def truth() -> Seen:
    return seen(honest(), honest(), None)


def fetching(changed: str, data: bytes) -> Fetch:
    def fetch(path: str, max_bytes: int) -> bytes:
        return data[: max_bytes + 1] if path == changed else honest()(path, max_bytes)

    return fetch


def is_refused_or_true(path: str, data: bytes, before: TrustState | None) -> bool:
    """Tell whether bytes in the place of a file are refused, or change nothing of what is believed."""
    try:
        state, shard = seen(honest(), fetching(path, data), before)
    except SpmError as error:
        return bool(error.message and error.reason)
    return shard == SHARD_BYTES and signed_parts(state) == signed_parts(truth()[0])


def signed_parts(state: TrustState) -> list[Any]:
    texts = (*state.roots, state.timestamp, state.snapshot, state.targets)
    return [json.loads(text)["signed"] for text in texts if text] + [state.keyring]


def served() -> list[str]:
    """Return the paths that a first refresh and one shard ask for."""
    asked: list[str] = []

    def fetch(path: str, max_bytes: int) -> bytes:
        asked.append(path)
        return honest()(path, max_bytes)

    seen(honest(), fetch, None)
    return [path for path in asked if path in honest().files]


def test_all_files_of_the_chain_are_tried() -> None:
    kinds = [path.rpartition("/")[2].rpartition(".json")[0].rpartition(".")[2] for path in served()]

    assert [kind.partition("-")[0] for kind in kinds] == [
        *("root", "root", "timestamp", "snapshot", "targets", "keyring", "bin", "log")
    ]


@given(data=st.data())
@UNHURRIED
def test_any_change_of_any_served_file_is_refused_or_changes_nothing(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(served_once()))
    before = data.draw(st.sampled_from([None, held()]))
    change = data.draw(changes(len(honest().files[path])))

    assert is_refused_or_true(path, change(honest().files[path]), before)


@cache
def served_once() -> list[str]:
    return served()


def changes(size: int) -> st.SearchStrategy[Change]:
    """Return flips of a bit, cuts, doubled and swapped pieces, and bytes that were never JSON."""
    places = st.integers(0, size - 1)
    return st.one_of(
        st.tuples(places, st.integers(0, 7)).map(lambda at: lambda old: flipped(old, *at)),
        places.map(lambda end: lambda old: old[:end]),
        st.tuples(places, places).map(lambda at: lambda old: old[: max(at)] + old[min(at) :]),
        st.tuples(places, places).map(lambda at: lambda old: swapped(old, *at)),
        st.binary(max_size=64).map(lambda new: lambda _: new),
    )


def flipped(old: bytes, place: int, bit: int) -> bytes:
    return old[:place] + bytes([old[place] ^ 1 << bit]) + old[place + 1 :]


def swapped(old: bytes, one: int, other: int) -> bytes:
    new = bytearray(old)
    new[one], new[other] = new[other], new[one]
    return bytes(new)


STRANGE: list[Any] = [
    None,
    True,
    -1,
    0,
    2**63,
    10**400,
    1.5,
    "",
    "x",
    "\ud800",
    [],
    {},
    [[]],
    {"x": None},
    ["a", "a"],
    [{}],
]
"""Values of JSON that no member of metadata has, or has only once."""


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value within a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for name, below in inner for found in places(below, (*path, name)))]


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, dict):
        return {name: put(below, path[1:], new) if name == path[0] else below for name, below in value.items()}
    return [put(below, path[1:], new) if at == path[0] else below for at, below in enumerate(value)]


@cache
def metadata_paths() -> list[str]:
    return [path for path in served() if not path.startswith("targets/")]


@pytest.mark.parametrize("place", range(6))
@given(data=st.data())
@UNHURRIED
def test_a_strange_value_in_any_member_is_refused_or_changes_nothing(place: int, data: st.DataObject) -> None:
    path = metadata_paths()[place]
    document = json.loads(honest().files[path])
    at = data.draw(st.sampled_from(places(document)))
    new = data.draw(st.sampled_from(STRANGE))

    assert is_refused_or_true(path, json.dumps(put(document, at, new)).encode(), None)


HOSTILE = {
    "nothing": b"",
    "not UTF-8": b'{"signed":"\xff"}',
    "UTF-16": '{"signed":{}}'.encode("utf-16"),
    "a byte-order mark": b"\xef\xbb\xbf{}",
    "deep lists": b"[" * 15_000,
    "deep objects": b'{"signed":' * 1_600,
    "a deep member": b'{"signatures":[],"signed":{"_type":"timestamp","x":' + b"[" * 7_000 + b"]" * 7_000 + b"}}",
    "a huge number": b'{"signatures":[],"signed":{"_type":"timestamp","version":' + b"9" * 10_000 + b"}}",
    "NaN": b'{"signatures":[],"signed":{"_type":"timestamp","version":NaN}}',
    "infinity": b'{"signatures":[],"signed":{"_type":"timestamp","version":-Infinity}}',
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "a page": b"<!doctype html><title>Sign in</title>",
    "half of a surrogate pair": b'{"signatures":[],"signed":{"_type":"\\ud800"}}',
}


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("place", range(6))
def test_what_is_no_metadata_is_a_bad_response_or_not_the_file_that_is_listed(what: str, place: int) -> None:
    path = metadata_paths()[place]

    with pytest.raises(SpmError) as refused:
        seen(honest(), fetching(path, HOSTILE[what]), None)

    is_listed = path not in {"2.root.json", "timestamp.json"}
    allowed = {"bad-response", "mix", "too-big"} if is_listed else {"bad-response"}
    assert refused.value.reason in allowed
    assert path in refused.value.message


@pytest.mark.parametrize("error", [BadResponse("it broke"), SpmError("anything")])
@pytest.mark.parametrize("place", range(8))
def test_what_a_fetch_raises_comes_out_as_itself(error: SpmError, place: int) -> None:
    broken = served()[place]

    def fetch(path: str, max_bytes: int) -> bytes:
        if path == broken:
            raise error
        return honest()(path, max_bytes)

    with pytest.raises(SpmError) as refused:
        seen(honest(), fetch, None)

    assert refused.value is error


def imported(before: TrustState | None, data: bytes) -> list[Any] | None:
    """Return what is believed by a trust file: the signed roots and the keyring; None where it is refused."""
    try:
        state = import_trust(honest().conf(), before, data, NOW)
    except SpmError as error:
        return None if error.message and error.reason else []
    return [json.loads(text)["signed"] for text in state.roots] + [state.imported_keyring]


@given(data=st.data())
@UNHURRIED
def test_any_change_of_a_trust_file_is_refused_or_changes_nothing(data: st.DataObject) -> None:
    before = data.draw(st.sampled_from([None, held()]))
    good = trust_file(truth()[0])
    change = data.draw(changes(len(good)))

    assert imported(before, change(good)) in (None, imported(before, good))


@given(data=st.data())
@UNHURRIED
def test_a_strange_value_in_any_member_of_a_trust_file_is_refused_or_changes_nothing(data: st.DataObject) -> None:
    good = trust_file(truth()[0])
    document = json.loads(good)
    name = data.draw(st.sampled_from(["roots", "targets", "keyring"]))
    inner = json.loads(document[name][-1] if name == "roots" else document[name])
    at, new = data.draw(st.sampled_from(places(inner))), data.draw(st.sampled_from(STRANGE))
    strange = json.dumps(put(inner, at, new))
    document[name] = [*document[name][:-1], strange] if name == "roots" else strange

    assert imported(None, canonical_bytes(document)) in (None, imported(None, good))
