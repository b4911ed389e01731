"""One end of the socketpair between host and worker: whole frames and memfds. Knows no message's meaning."""

import socket
import struct
import time
from typing import Any

from runtime.protocol import Decoder, ProtocolBroken

_CHUNK = 1 << 16
_CREDENTIALS = struct.Struct("3i")
_DESCRIPTOR = struct.Struct("i")


class Channel:
    """Sends and receives frames. Only the end that asks for them ever receives descriptors."""

    def __init__(self, end: socket.socket, *, takes_descriptors: bool = False) -> None:
        self._end = end
        self._decoder = Decoder()
        self._takes_descriptors = takes_descriptors
        self._descriptors: list[int] = []

    def send(self, frame: bytes, descriptor: int | None = None, *, deadline: float | None = None) -> None:
        """Send a frame, with a descriptor that the other end gets a copy of.

        Raises: TimeoutError when the other end has not made room for it when the monotonic clock passes `deadline`.
        """
        self._await(deadline)
        sent = 0
        if descriptor is not None:
            sent = socket.send_fds(self._end, [frame], [descriptor])
        self._end.sendall(frame[sent:])

    def receive(self, deadline: float | None = None) -> dict[str, Any] | None:
        """Return the next message, or None when the other end is gone.

        Raises: TimeoutError when the monotonic clock passes `deadline`; ProtocolBroken.
        """
        while (message := self._decoder.next()) is None:
            self._await(deadline)
            data = self._read()
            if not data:
                return None
            self._decoder.feed(data)
        return message

    def require_silence(self) -> None:
        """Raise ProtocolBroken when the worker has said more than it was asked for: it would answer the next call."""
        self._end.settimeout(0)
        try:
            is_silent = self._decoder.is_empty and not self._end.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, ConnectionResetError):
            is_silent = self._decoder.is_empty
        if not is_silent:
            raise ProtocolBroken("the worker spoke before it was asked")

    def peer_pid(self, deadline: float) -> int | None:
        """Wait for the first bytes and return the pid, in our own numbering, of the process that sent them.

        The kernel vouches for it, so it needs no trust in the worker. None: the other end is gone.
        """
        self._end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._await(deadline)
        try:
            data, ancillary, _, _ = self._end.recvmsg(_CHUNK, socket.CMSG_SPACE(_CREDENTIALS.size))
        except ConnectionResetError:
            return None
        self._end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        self._decoder.feed(data)
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                return int(_CREDENTIALS.unpack(content)[0]) if data else None
        return None

    def take_descriptor(self) -> int:
        """Return the oldest descriptor that came along.

        Raises: ProtocolBroken when none did.
        """
        if not self._descriptors:
            raise ProtocolBroken("a `map` message came without its descriptor")
        return self._descriptors.pop(0)

    def wait_gone(self, deadline: float) -> None:
        """Wait until every process that holds the other end is gone, dropping what they still say.

        Raises: TimeoutError.
        """
        while True:
            self._await(deadline)
            if time.monotonic() > deadline:
                raise TimeoutError
            try:
                if not self._end.recv(_CHUNK):
                    return
            except ConnectionResetError:
                return

    def close(self) -> None:
        self._end.close()

    def _await(self, deadline: float | None) -> None:
        remaining = None if deadline is None else max(deadline - time.monotonic(), 1e-3)
        self._end.settimeout(remaining)

    def _read(self) -> bytes:
        try:
            if not self._takes_descriptors:
                return self._end.recv(_CHUNK)
            data, ancillary, _, _ = self._end.recvmsg(_CHUNK, socket.CMSG_SPACE(_DESCRIPTOR.size))
        except ConnectionResetError:
            return b""
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self._descriptors.append(_DESCRIPTOR.unpack_from(content)[0])
        return data
