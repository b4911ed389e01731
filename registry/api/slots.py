"""How many slow transfers one worker may be busy with at once, so that quick answers always find a thread."""

from threading import BoundedSemaphore

from manifests.errors import RegistryRefused


class Slots:
    """A fixed number of places; whoever finds none is refused at once, never queued."""

    def __init__(self, count: int, what: str) -> None:
        self._count = count
        self._what = what
        self._free = BoundedSemaphore(count)

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_error: object) -> None:
        self.give()

    def take(self) -> None:
        """Take a place.

        Raises:
            RegistryRefused: all are taken (`busy`).
        """
        if not self._free.acquire(blocking=False):
            raise RegistryRefused(
                f"this registry is busy with {self._count} {self._what}",
                reason="busy",
                hint="try again in a moment",
            )

    def give(self) -> None:
        """Give a place back."""
        self._free.release()
