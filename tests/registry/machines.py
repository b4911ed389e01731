"""The machines of a ceremony: a registry without a root, people with root keys, and what each can run. No claims."""

import io
import json
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient

from keys.key_files import KeyRole, PublicKeyFile, new_key
from registry.app import create_app
from registry.cli import main
from registry.storage.site import open_site
from tests.registry.team import state_of
from tests.registry.tuf_client import TufClient


@dataclass(frozen=True, slots=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def ok(self) -> "Said":
        assert self.code == 0, self.err
        return self


def run(*arguments: object) -> Said:
    """Run `spm-registry` in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Said(code, out.getvalue(), err.getvalue())


@dataclass(frozen=True, slots=True)
class Holder:
    """Somebody with a key, on a machine of their own."""

    folder: Path
    public: PublicKeyFile

    @property
    def keyid(self) -> str:
        return self.public.keyid

    @property
    def pub(self) -> Path:
        return self.folder / f"{self.public.name}.pub"

    @property
    def key(self) -> Path:
        return self.folder / f"{self.public.name}.key"


def holder(folder: Path, name: str, role: KeyRole = KeyRole.ROOT, passphrase: bytes | None = None) -> Holder:
    return Holder(folder / name, new_key(folder / name, name, role, name, passphrase))


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry's machine."""

    root: Path

    @property
    def draft(self) -> Path:
        return self.root / "ceremony"

    @property
    def loader_conf(self) -> Path:
        return self.root / "loader.conf"

    def run(self, *arguments: object) -> Said:
        return run(*arguments, "--root", self.root)

    def json(self, *arguments: object) -> dict[str, Any]:
        """Run a command that must succeed, and return what it tells a program."""
        said = self.run(*arguments, "--json").ok()
        assert said.err == ""
        return said.document

    def state(self) -> str:
        return state_of(self.root)

    def refuses(self, *arguments: object) -> tuple[int, str, str]:
        """Run a command that must change nothing; return its exit code, message and hint."""
        before = self.state()
        said = self.run(*arguments, "--json")
        assert self.state() == before
        error = said.document["error"]
        assert said.code == error["exit"] != 0
        return error["exit"], error["message"], error["hint"]

    def carry(self, folder: Path) -> Path:
        """Copy the draft to where another machine can read it."""
        shutil.copytree(self.draft, folder)
        return folder

    def asking(self) -> Callable[[str], tuple[int, bytes]]:
        """Return what asks this registry over HTTP."""
        client: FlaskClient = create_app(open_site(self.root), lambda: int(datetime.now(UTC).timestamp())).test_client()

        def ask(path: str) -> tuple[int, bytes]:
            answer = client.get(path)
            return answer.status_code, answer.data

        return ask

    def client(self, folder: Path, root_version: int = 1) -> TufClient:
        """Return a client that pinned one root, refreshed."""
        ask = self.asking()
        status, pinned = ask(f"/v1/tuf/{root_version}.root.json")
        assert status == 200
        return TufClient(folder, ask, pinned, datetime.now(UTC))
