"""Nested results as JSON, each tensor standing as its index. Knows no torch, holds no tensor bytes.

One node is a one-member object: `t` tensor, `l` list, `u` tuple, `d` dict as pairs, `f` float in hex, `p` plain value.
Nothing else crosses between worker and host, and no node can name a class: there is no pickle here.
"""

from collections.abc import Callable, Sequence
from typing import Any

from manifests.errors import UsageError
from runtime.protocol import MAX_TENSORS, MAX_TEXT

MAX_DEPTH = 16
MAX_NODES = 65_536

_MAX_INTEGER = 2**63


def flatten(value: Any, is_tensor: Callable[[Any], bool]) -> tuple[Any, list[Any]]:
    """Return the value as nodes, and its tensors in the order of their indices.

    Raises: UsageError for what is neither tensor, list, tuple, dict nor plain value, and beyond the bounds.
    """
    flattening = _Flattening(is_tensor)
    return flattening.visit(value, 0), flattening.tensors


def build(node: Any, tensors: Sequence[Any]) -> Any:
    """Return the value that the nodes describe, with these tensors in their places. The nodes may be hostile.

    Raises: UsageError when they are not what `flatten` makes.
    """
    building = _Building(tensors)
    value = building.visit(node, 0)
    if sorted(building.used) != list(range(len(tensors))):
        raise UsageError("a result names a tensor twice, or not at all")
    return value


# Classes, not inner functions: an inner function that calls itself is a cycle, and would keep the tensors alive.
class _Bounded:
    def __init__(self) -> None:
        self._count = 0

    def _enter(self, depth: int) -> None:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_NODES:
            raise UsageError(f"a result is nested at most {MAX_DEPTH} deep and has at most {MAX_NODES} values")


class _Flattening(_Bounded):
    def __init__(self, is_tensor: Callable[[Any], bool]) -> None:
        super().__init__()
        self._is_tensor = is_tensor
        self.tensors: list[Any] = []

    def visit(self, value: Any, depth: int) -> dict[str, Any]:
        self._enter(depth)
        if self._is_tensor(value):
            return self._tensor(value)
        if isinstance(value, dict):
            return {"d": [[_key(key), self.visit(item, depth + 1)] for key, item in value.items()]}
        if isinstance(value, list | tuple):
            return {"l" if isinstance(value, list) else "u": [self.visit(item, depth + 1) for item in value]}
        return _plain(value)

    def _tensor(self, tensor: Any) -> dict[str, Any]:
        if len(self.tensors) >= MAX_TENSORS:
            raise UsageError(f"a result has at most {MAX_TENSORS} tensors")
        self.tensors.append(tensor)
        return {"t": len(self.tensors) - 1}


class _Building(_Bounded):
    def __init__(self, tensors: Sequence[Any]) -> None:
        super().__init__()
        self._tensors = tensors
        self.used: list[int] = []

    def visit(self, node: Any, depth: int) -> Any:
        self._enter(depth)
        kind, item = _only_member(node)
        if kind == "t":
            self.used.append(_index(item, len(self._tensors)))
            return self._tensors[self.used[-1]]
        if kind == "d":
            return {_key(key): self.visit(value, depth + 1) for key, value in map(_pair, _items(item))}
        if kind == "l":
            return [self.visit(value, depth + 1) for value in _items(item)]
        if kind == "u":
            return tuple(self.visit(value, depth + 1) for value in _items(item))
        return _unplain(kind, item)


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, float):
        return {"f": value.hex()}
    if isinstance(value, int) and not -_MAX_INTEGER <= value < 2 * _MAX_INTEGER:
        raise UsageError("a whole number in a result has at most 64 bits")
    if isinstance(value, str) and len(value) > MAX_TEXT:
        raise UsageError(f"text in a result has at most {MAX_TEXT} characters")
    if value is None or type(value) in (bool, int, str):
        return {"p": value}
    raise UsageError(
        f"a value of type {type(value).__qualname__!r} cannot leave the worker; return tensors or plain values"
    )


def _unplain(kind: str, item: Any) -> Any:
    if kind == "f" and isinstance(item, str) and len(item) <= 64:
        try:
            return float.fromhex(item)
        except (ValueError, OverflowError) as error:
            raise UsageError(f"{item!r} is not a number") from error
    if kind == "p" and (item is None or isinstance(item, bool | int | str)):
        return item
    raise UsageError(f"a result has the unknown node {kind[:40]!r}")


def _key(key: Any) -> str | int:
    if isinstance(key, bool) or not isinstance(key, str | int) or len(str(key)) > 1024:
        raise UsageError("keys of a dict in a result are text or whole numbers")
    return key


def _only_member(node: Any) -> tuple[str, Any]:
    if not isinstance(node, dict) or len(node) != 1:
        raise UsageError("a node of a result is not an object with one member")
    return next(iter(node.items()))


def _items(item: Any) -> list[Any]:
    if not isinstance(item, list):
        raise UsageError("a node of a result is not a list")
    return item


def _pair(item: Any) -> tuple[Any, Any]:
    if not isinstance(item, list) or len(item) != 2:
        raise UsageError("a member of a dict in a result is not a pair")
    return item[0], item[1]


def _index(item: Any, count: int) -> int:
    if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < count:
        raise UsageError(f"a result names tensor {str(item)[:40]!r} of {count}")
    return item
