"""A cache that never holds more than so many bytes. Decides nothing about freshness."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Least recently used values go first. Safe to use from several threads."""

    def __init__(self, max_bytes: int, size_of: Callable[[V], int]) -> None:
        self._max_bytes = max_bytes
        self._size_of = size_of
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """Return a held value."""
        with self._lock:
            value = self._entries.get(key)
            if value is not None:
                self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Hold a value, letting older ones go where it needs room."""
        with self._lock:
            old = self._entries.pop(key, None)
            if old is not None:
                self._bytes -= self._size_of(old)
            self._entries[key] = value
            self._bytes += self._size_of(value)
            while self._bytes > self._max_bytes:
                _, gone = self._entries.popitem(last=False)
                self._bytes -= self._size_of(gone)
