"""The same bytes as wheels behind a plain index, for the peers' installers. Builds no plugin and measures nothing."""

import base64
import hashlib
import re
import select
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 10


def write_index(folder: Path, plugins: Mapping[str, Mapping[str, bytes]]) -> None:
    """Write a wheel of each plugin's files, and an index of them with digests and separate metadata.

    With the separate metadata an installer need not open a wheel to resolve.
    """
    for name, files in plugins.items():
        place = folder / "simple" / name
        place.mkdir(parents=True)
        wheel = place / f"{name}-1.0.0-py3-none-any.whl"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n".encode()
        _write_wheel(wheel, name, files, metadata)
        wheel.with_name(f"{wheel.name}.metadata").write_bytes(metadata)
        digest, described = hashlib.sha256(wheel.read_bytes()).hexdigest(), hashlib.sha256(metadata).hexdigest()
        link = f'<a href="{wheel.name}#sha256={digest}" data-core-metadata="sha256={described}">{wheel.name}</a>'
        (place / "index.html").write_text(f"<!DOCTYPE html><html><body>{link}</body></html>\n")


def _write_wheel(wheel: Path, name: str, files: Mapping[str, bytes], metadata: bytes) -> None:
    about = f"{name}-1.0.0.dist-info"
    members = {f"{name}/{path}": data for path, data in files.items()} | {
        f"{about}/METADATA": metadata,
        f"{about}/WHEEL": b"Wheel-Version: 1.0\nGenerator: benchmark\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in members.items())
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in (members | {f"{about}/RECORD": f"{record}{about}/RECORD,,\n".encode()}).items():
            archive.writestr(path, data)


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve the index with Python's own file server, which keeps connections, and give the index's URL."""
    words = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--protocol", "HTTP/1.1"]
    server = subprocess.Popen(
        [*words, "--directory", str(folder), "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield f"http://127.0.0.1:{_port_of(server)}/simple/"
    finally:
        server.terminate()
        server.wait(START_SECONDS)
        if server.stdout is not None:
            server.stdout.close()


def _port_of(server: "subprocess.Popen[str]") -> int:
    if server.stdout is None or not select.select([server.stdout], [], [], START_SECONDS)[0]:
        raise TimeoutError("the index did not start")
    said = server.stdout.readline()
    if (found := re.search(r"port (\d+)", said)) is None:
        raise TimeoutError(f"the index did not start: {said}")
    return int(found[1])
