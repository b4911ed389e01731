"""The three verbs of the tuf-conformance protocol over `keys.trust`: init, refresh, download. Decides nothing itself.

It works in METADATA_DIR directly, so that what a refused update has verified stays there, as TUF 5.3.8 asks; spm's own
commands work in scratch and keep all of an update or nothing. It takes every key kind that the suite uses; the
rules that spm adds to TUF's (`keys.trust_policy.STRICT`) have their own tests.
"""

import argparse
import hashlib
import shutil
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from keys.trust import TUF_ANY, TrustedIndex
from manifests.errors import BadResponse, NotFound, SpmError
from spm_client.adapters.http import RegistryClient

MAX_TARGET_BYTES = 64 << 20


def main() -> int:
    """Return 0 for what was done, 1 for what was refused."""
    options = _parser().parse_args()
    try:
        if options.verb == "init":
            shutil.copyfile(options.trusted_root, options.metadata_dir / "root.json")
            return 0
        places = _Places(options.target_dir)
        index = _refreshed(options, places)
        for name in options.target_name if options.verb == "download" else ():
            places.name = name
            _download(index, places)
        return 0
    except SpmError as error:
        print(f"error[{error.reason}]: {error.message}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tuf-client", description=__doc__)
    parser.add_argument("--metadata-dir", type=Path, required=True)
    parser.add_argument("--metadata-url")
    parser.add_argument("--target-name", action="append", default=[], help="may be given again: one after another")
    parser.add_argument("--target-dir", type=Path)
    parser.add_argument("--target-base-url")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("init").add_argument("trusted_root", type=Path)
    verbs.add_parser("refresh")
    verbs.add_parser("download")
    return parser


@dataclass
class _Places:
    """Where artifacts lie, each under a name of its own; `name` is the one that is asked for now."""

    folder: Path | None
    name: str = ""

    @property
    def path(self) -> Path:
        assert self.folder is not None, "a download needs --target-dir"
        return self.folder / quote(self.name, "")

    def kept(self, digest: str) -> bytes | None:
        """Return the artifact of an earlier download where it is the very one that is asked for."""
        if not self.path.is_file() or hashlib.sha256(data := self.path.read_bytes()).hexdigest() != digest:
            return None
        return data


def _refreshed(options: argparse.Namespace, places: _Places) -> TrustedIndex:
    metadata = RegistryClient(options.metadata_url)
    targets = RegistryClient(options.target_base_url or options.metadata_url)

    def fetch(path: str, max_bytes: int) -> bytes:
        if not path.startswith("targets/"):
            return _document(metadata, f"/{path}", max_bytes)
        path = path.removeprefix("targets")
        kept = places.kept(path.rpartition("/")[2].partition(".")[0])
        return _document(targets, path, max_bytes) if kept is None else kept

    bootstrap = (options.metadata_dir / "root.json").read_bytes()
    index = TrustedIndex(options.metadata_dir, bootstrap, fetch, datetime.now(UTC), TUF_ANY)
    index.refresh()
    return index


def _document(source: RegistryClient, path: str, max_bytes: int) -> bytes:
    try:
        return source.document(path, max_bytes=max_bytes)
    except BadResponse as error:
        # A plain web server says in its status alone what a registry says in a problem document.
        if error.context.get("status") in {403, 404}:
            raise NotFound(error.message) from error
        raise


def _download(index: TrustedIndex, places: _Places) -> None:
    data = index.target(places.name, MAX_TARGET_BYTES)
    if data is None:
        raise NotFound(f"there is no target `{places.name}`")
    if places.kept(hashlib.sha256(data).hexdigest()) is None:
        places.path.write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
