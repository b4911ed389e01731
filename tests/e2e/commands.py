"""The real console scripts as subprocesses, and what they answered. Imports nothing of spm."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SPM = str(Path(sys.executable).with_name("spm"))
SPM_REGISTRY = str(Path(sys.executable).with_name("spm-registry"))
FAULTS = Path(__file__).parents[1] / "fakes" / "faults"
SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Return the one JSON object on stdout."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value

    def ok(self, said: str = "") -> "Answer":
        """Return itself if the command succeeded and said just this on stderr."""
        assert (self.code, self.err) == (0, said), f"exit {self.code}\n{self.out}\n{self.err}"
        return self

    def refused(self, code: int, reason: str, message: str, hint: str = "", *, said: str = "") -> dict[str, Any]:
        """Accept exactly this refusal, told alike to a person on stderr and to a program on stdout.

        `said` is what stderr shows before it. Returns the refusal's context.
        """
        words = f"{said}error[{reason}]: {message}\n" + (f"  hint: {hint}\n" if hint else "")
        assert self.err == words
        assert self.code == code
        error = self.document["error"]
        context = error.pop("context")
        assert error == {"exit": code, "reason": reason, "message": message, "hint": hint}
        assert isinstance(context, dict)
        return context


def run(arguments: Sequence[str | Path], environment: dict[str, str], *, said: str = "") -> Answer:
    """Run a command to its end with exactly this environment."""
    done = subprocess.run(
        [str(word) for word in arguments],
        env=environment,
        input=said,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    return Answer(code=done.returncode, out=done.stdout, err=done.stderr)


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment in which nothing of the user's own is read or written."""
    return {
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin")),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "LANG": "C.UTF-8",
        **more,
    }


@dataclass(frozen=True, slots=True)
class Client:
    """A machine's `spm`, with its own store and settings."""

    home: Path

    @property
    def store(self) -> Path:
        return self.home / "store"

    @property
    def conf(self) -> Path:
        return self.store / "loader.conf"

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.home, SPM_ROOT=str(self.store))

    def struck(self, kind: str, at: int, *arguments: str) -> Answer:
        """Run `spm` with a fault at its nth change in the store; tests/fakes/faults says which kinds there are."""
        fault = {"PYTHONPATH": str(FAULTS), "FAULT": kind, "FAULT_IN": str(self.store), "FAULT_AT": str(at)}
        return run([SPM, *arguments], self.environment | fault)

    def copy(self, name: str) -> "Client":
        """Return another machine with the same store."""
        home = self.home.with_name(f"{self.home.name}-{name}")
        shutil.copytree(self.store, home / "store", symlinks=True)
        return Client(home)

    def trust(self, loader_conf: str) -> None:
        """Write loader.conf."""
        self.store.mkdir(parents=True, exist_ok=True)
        self.conf.write_text(loader_conf)
        self.conf.chmod(0o644)

    def spm(self, *arguments: str | Path, said: str = "") -> Answer:
        """Run `spm ... --json`."""
        return run([SPM, *arguments, "--json"], self.environment, said=said)

    def told(self, *arguments: str | Path) -> Answer:
        """Run `spm ...` as a person does."""
        return run([SPM, *arguments], self.environment)

    def installed(self) -> dict[str, str]:
        """Return what `spm list` shows: versions by name."""
        return {entry["name"]: entry["version"] for entry in self.spm("list").ok().document["plugins"]}

    def require_sound(self) -> None:
        """Assert that every installed plugin verifies."""
        names = [f"{entry['name']} {entry['release']}" for entry in self.spm("list").ok().document["plugins"]]
        said = "".join(f"verified   {name}\n" for name in names) or "nothing is installed\n"
        self.spm("verify").ok(said)

    def tree(self, name: str, release: str = "1.0.0") -> Path:
        return self.store / "plugins" / name / release
