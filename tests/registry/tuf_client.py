"""python-tuf's own client against the registry, at a moment of the test's choosing. No claims."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from tuf.api.exceptions import DownloadHTTPError
from tuf.ngclient import Updater
from tuf.ngclient.fetcher import FetcherInterface

Ask = Callable[[str], tuple[int, bytes]]


class _Asked(FetcherInterface):
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def _fetch(self, url: str) -> Iterator[bytes]:
        status, data = self._ask(url.removeprefix("registry:"))
        if status != 200:
            raise DownloadHTTPError(f"{url} is answered {status}", status)
        return iter([data])


class TufClient:
    """A client that trusts one root, and keeps what it has seen in a folder."""

    def __init__(self, folder: Path, ask: Ask, root: bytes, now: datetime) -> None:
        (folder / "targets").mkdir(parents=True, exist_ok=True)
        self.updater = Updater(
            str(folder),
            "registry:/v1/tuf/",
            str(folder / "targets"),
            "registry:/v1/tuf/targets/",
            _Asked(ask),
            bootstrap=root,
        )
        self.updater._trusted_set.reference_time = now
        self.updater.refresh()

    def versions(self) -> dict[str, int]:
        """Return the version of each file that the snapshot lists, and of those above it."""
        trusted = self.updater._trusted_set
        listed = {name.removesuffix(".json"): file.version for name, file in trusted.snapshot.meta.items()}
        return {"timestamp": trusted.timestamp.version, "snapshot": trusted.snapshot.version, **listed}

    def target(self, path: str) -> bytes | None:
        """Return a target's verified bytes."""
        found = self.updater.get_targetinfo(path)
        return None if found is None else Path(self.updater.download_target(found)).read_bytes()
