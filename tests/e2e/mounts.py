"""Disks that only a mount namespace of its own sees, below a machine's store. Makes no claims."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.commands import SPM, Answer, Client, run


class Mounted:
    """A machine whose store has other disks in it. `spm` runs there; `store` is the store as the namespace sees it."""

    def __init__(self, client: Client, mounts: Sequence[str]) -> None:
        self._client = client
        script = " && ".join([*mounts, "echo mounted", "exec cat"])
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._holder.stdout is not None
        self.is_mounted = self._holder.stdout.readline() == "mounted\n"

    @property
    def why_not(self) -> str:
        return self._holder.communicate()[1].strip()

    @property
    def store(self) -> Path:
        return Path(f"/proc/{self._holder.pid}/root{self._client.store}")

    def spm(self, *arguments: str, before: str = "") -> Answer:
        """Run `spm ... --json` in the namespace, after the shell's words `before`."""
        words = ["sh", "-c", f'{before}exec "$0" "$@"', SPM, *arguments, "--json"]
        return run(["nsenter", "--mount", f"--target={self._holder.pid}", *words], self._client.environment)

    def mount(self, words: str) -> None:
        """Mount something more there."""
        enter = ["nsenter", "--mount", f"--target={self._holder.pid}", "sh", "-c", words]
        subprocess.run(enter, check=True)

    def close(self) -> None:
        self._holder.communicate()


@contextmanager
def mounted(client: Client, *mounts: str) -> Iterator[Mounted]:
    """Give a machine with these mounts, `{}` standing for its store; skip where nothing can be mounted."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("nsenter"):
        pytest.skip("mounting needs root, unshare and nsenter")
    machine = Mounted(client, [words.format(shlex.quote(str(client.store))) for words in mounts])
    if not machine.is_mounted:
        pytest.skip(f"nothing can be mounted here: {machine.why_not}")
    try:
        yield machine
    finally:
        machine.close()


def fill(path: Path) -> None:
    """Write until the disk has not a byte left."""
    with path.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
