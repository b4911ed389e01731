"""Where a command's signed documents and blobs come from, as a protocol: a registry, or a bundle. Verifies nothing."""

from collections.abc import Iterator
from typing import Protocol

from manifests.errors import BadResponse, RegistryTimeout, RegistryUnreachable


class TransferCut(BadResponse):
    """A body ended before its end; what came of it is as good as what was still to come."""


class TransferStalled(RegistryTimeout):
    """A body stopped to come, as where a network has gone without a word; otherwise as `TransferCut`."""


class ConnectionFailed(RegistryUnreachable):
    """There was no connection, or it ended before an answer, as while a registry is started anew."""


class Source(Protocol):
    """All that an install asks of a registry; every answer is verified by whoever asked."""

    def document(self, path: str, *, max_bytes: int) -> bytes:
        """Return a manifest or a signature file: `source.document("/v1/manifests/<sha256>", max_bytes=4096)`.

        Raises: NotFound where the source has no such thing; another SpmError where it cannot tell.
        """
        ...

    def metadata(self, path: str, *, max_bytes: int, held: bytes | None = None, seconds: float | None = None) -> bytes:
        """Return what a registry has below `/v1/tuf/`: `source.metadata("timestamp.json", max_bytes=16384)`.

        Where the source says that `held` is still what it has, `held` itself comes back.
        Raises: as `document`; TooBig for more than `max_bytes`.
        """
        ...

    def blob(self, sha256: str, *, size: int, offset: int = 0) -> Iterator[bytes]:
        """Yield a blob as it comes, from a byte on, to at most one byte more than `size` says.

        Raises: TransferCut, TransferStalled and ConnectionFailed where asking for the rest can help.
        """
        ...
