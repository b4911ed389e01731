"""What host and worker say to each other: bounded, length-prefixed JSON frames. Does no I/O, carries no tensor bytes.

1. host `start` (what to test, which limits)      worker `tested` (each layer's result)
2. host `load` (the plugin, its device)           worker `ready` or `failed`
3. host `map` (one memfd, by SCM_RIGHTS)          no answer
4. host `call` (where the inputs are)             worker `result`, `failed`, or `grow`, answered by `map`
Either end closing the channel ends the worker.
"""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from manifests import fields
from manifests.errors import SpmError, UsageError, WorkerError
from manifests.fields import Fields

PROTOCOL_VERSION = 1
MAX_FRAME_BYTES = 4 << 20
MAX_TEXT = 64 << 10
MAX_TENSORS = 4096
MAX_DIMENSIONS = 64

_LENGTH = struct.Struct(">I")
_INT64 = 2**63 - 1


class ProtocolBroken(WorkerError):
    """The other end sent what the protocol does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Where one tensor lies in an arena: its bytes start at `offset`, contiguous, in the host's byte order."""

    dtype: str
    shape: tuple[int, ...]
    offset: int

    def to_dict(self) -> dict[str, Any]:
        return {"dtype": self.dtype, "shape": list(self.shape), "offset": self.offset}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """What one layer's self-test saw: whether the layer held, and the evidence in words."""

    id: str
    held: bool
    evidence: str

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, "held": self.held, "evidence": self.evidence}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    layers: tuple[LayerResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    torch: str
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Plugin code raised: the exception in one line, and its traceback. `kept`: as for a result.

    `returned`: it raised nothing, but what it returned cannot be passed on.
    """

    error: str
    traceback: str
    kept: bool
    returned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Grow:
    """The outputs need an arena of `size` bytes."""

    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What the plugin returned: `value` with tensors as indices into `tensors`. `kept`: it still holds its inputs."""

    value: Any
    tensors: tuple[Slot, ...]
    compute_ns: int
    kept: bool


Reply = Proof | Ready | Failed | Grow | Result


def encode(kind: str, **members: Any) -> bytes:
    """Return one frame.

    Raises: ProtocolBroken when it is larger than the other end accepts.
    """
    body = json.dumps({"kind": kind, **members}, separators=(",", ":"), allow_nan=False).encode()
    if len(body) > MAX_FRAME_BYTES:
        raise ProtocolBroken(f"a `{kind}` message of {len(body)} bytes is over the {MAX_FRAME_BYTES} allowed")
    return _LENGTH.pack(len(body)) + body


class Decoder:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def is_empty(self) -> bool:
        return not self._buffer

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next(self) -> dict[str, Any] | None:
        """Return the next whole message, or None until more bytes come.

        Raises: ProtocolBroken for a frame that is too large, is no JSON object, or has no kind.
        """
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > MAX_FRAME_BYTES:
            raise ProtocolBroken(f"a message of {length} bytes is over the {MAX_FRAME_BYTES} allowed")
        if len(self._buffer) < _LENGTH.size + length:
            return None
        body = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
        del self._buffer[: _LENGTH.size + length]
        return _object(body)


def _object(body: bytes) -> dict[str, Any]:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProtocolBroken("a message is not JSON") from error
    if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
        raise ProtocolBroken("a message is not an object with a `kind`")
    return message


def parse_reply(message: dict[str, Any]) -> Reply:
    """Return a worker's message as a value. The worker may have been taken over by its plugin: nothing is assumed.

    Raises: ProtocolBroken naming what is wrong.
    """
    kind = message["kind"]
    reader = _READERS.get(kind)
    if reader is None:
        raise ProtocolBroken(f"the worker sent a message of the unknown kind {kind[:40]!r}")
    try:
        return fields.nested(reader)({name: value for name, value in message.items() if name != "kind"})
    except SpmError as error:
        raise ProtocolBroken(f"the worker sent a wrong `{kind}` message: {error.message[:500]}") from error


def parse_slot(value: Any) -> Slot:
    """Return where a tensor lies.

    Raises: UsageError naming what is wrong.
    """
    return fields.nested(_read_slot)(value)


def _bounded_text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise UsageError(f"{str(value)[:40]!r} is not text of at most {MAX_TEXT} characters")
    return value


def _anything(value: Any) -> Any:
    return value


def _read_slot(reader: Fields) -> Slot:
    return Slot(
        dtype=reader.required("dtype", fields.matching(r"[a-z0-9_]{1,32}", "a dtype")),
        shape=reader.required("shape", fields.many(fields.whole(0, _INT64), MAX_DIMENSIONS)),
        offset=reader.required("offset", fields.whole(0, _INT64)),
    )


def _read_layer(reader: Fields) -> LayerResult:
    return LayerResult(
        id=reader.required("id", fields.matching(r"L[0-9]{1,2}", "a layer")),
        held=reader.required("held", fields.boolean),
        evidence=reader.required("evidence", _bounded_text),
    )


def _read_proof(reader: Fields) -> Proof:
    return Proof(layers=reader.required("layers", fields.many(fields.nested(_read_layer), 32)))


def _read_ready(reader: Fields) -> Ready:
    return Ready(
        torch=reader.required("torch", fields.matching(r"[0-9A-Za-z.+_-]{1,64}", "a version of torch")),
        threads=reader.required("threads", fields.whole(1, 4096)),
    )


def _read_failed(reader: Fields) -> Failed:
    return Failed(
        error=reader.required("error", _bounded_text),
        traceback=reader.required("traceback", _bounded_text),
        kept=reader.required("kept", fields.boolean),
        returned=reader.required("returned", fields.boolean),
    )


def _read_grow(reader: Fields) -> Grow:
    return Grow(size=reader.required("size", fields.whole(1, _INT64)))


def _read_result(reader: Fields) -> Result:
    return Result(
        value=reader.required("value", _anything),
        tensors=reader.required("tensors", fields.many(parse_slot, MAX_TENSORS)),
        compute_ns=reader.required("compute_ns", fields.whole(0, _INT64)),
        kept=reader.required("kept", fields.boolean),
    )


_READERS: dict[str, Callable[[Fields], Reply]] = {
    "tested": _read_proof,
    "ready": _read_ready,
    "failed": _read_failed,
    "grow": _read_grow,
    "result": _read_result,
}
