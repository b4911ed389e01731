"""The stage of the demo: runs real commands, shows them as a person would type them, and holds each to its outcome.

Tells no story and knows no plugin.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WIDTH = 100
SHOWN_LINES = 32
KILL_SECONDS = 60


class DemoFailed(Exception):
    """A command did not do what the story says."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the closing table."""

    what: str
    outcome: str
    detail: str


@dataclass(slots=True)
class Stage:
    """A folder to work in, the commands' environment, and what came of each act."""

    folder: Path
    environment: dict[str, str]
    rows: list[Row] = field(default_factory=list)
    is_coloured: bool = field(default_factory=sys.stdout.isatty)

    def chapter(self, title: str, text: str) -> None:
        print(f"\n{self._paint('1;36', f'== {title} ' + '=' * (WIDTH - len(title) - 4))}")
        print(textwrap.fill(text, WIDTH), end="\n\n")

    def run(
        self,
        command: str,
        *,
        given: str | None = None,
        lines: int = SHOWN_LINES,
        secret: re.Pattern[str] | None = None,
    ) -> str:
        """Run a command that must succeed, and return what it printed. Of a secret only the beginning is shown."""
        return self._run(command, 0, given=given, lines=lines, secret=secret)

    def kill(self, command: str, *, when: Callable[[], bool], after: Callable[[], str]) -> None:
        """Start a command, end it by SIGKILL as soon as something is so, and say after what that was."""
        print(self._paint("1", f"$ {command}"))
        arguments, deadline = shlex.split(command), time.monotonic() + KILL_SECONDS
        with subprocess.Popen(
            arguments, cwd=self.folder, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            while process.poll() is None and time.monotonic() < deadline and not when():
                time.sleep(0.02)
            is_in_the_middle = process.poll() is None and when()
            process.kill()
        if not is_in_the_middle:
            raise DemoFailed(f"`{command}` was to be killed in the middle, and did not come that far, or too far")
        print(f"  (killed by SIGKILL after {after()})\n")

    def json(self, command: str) -> dict[str, Any]:
        """Run a command that must succeed, quietly, and return its JSON."""
        done = self._call(f"{command} --json")
        if done.returncode:
            raise DemoFailed(f"`{command}` ended with {done.returncode}: {done.stderr}")
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def refuse(self, what: str, command: str, *, exit_code: int, reason: str) -> None:
        """Run a command that must be refused with this exit code and reason, and change nothing in the store."""
        before = self._picture()
        said = self._run(command, exit_code)
        if f"error[{reason}]" not in said:
            raise DemoFailed(f"`{command}` was to be refused for `{reason}`, and said: {said}")
        if self._picture() != before:
            raise DemoFailed(f"`{command}` was refused and still changed the store")
        self.rows.append(Row(what, f"refused, exit {exit_code}", reason))

    def done(self, what: str, detail: str) -> None:
        self.rows.append(Row(what, "done", detail))

    def summary(self) -> None:
        widths = [max(len(getattr(row, name)) for row in self.rows) for name in ("what", "outcome")]
        for row in self.rows:
            colour = "32" if row.outcome == "done" else "33"
            print(f"  {row.what:{widths[0]}}  {self._paint(colour, f'{row.outcome:{widths[1]}}')}  {row.detail}")

    def _run(
        self,
        command: str,
        expected: int,
        *,
        given: str | None = None,
        lines: int = SHOWN_LINES,
        secret: re.Pattern[str] | None = None,
    ) -> str:
        print(self._paint("1", f"$ {command}"))
        done = self._call(command, given, stderr=subprocess.STDOUT)
        said = secret.sub(lambda found: f"{found[0][:8]}...", done.stdout) if secret else done.stdout
        _show(said.rstrip().splitlines(), lines)
        if done.returncode != expected:
            raise DemoFailed(f"`{command}` ended with {done.returncode}, not {expected}")
        if expected:
            print(self._paint("33", f"  (exit {expected})"))
        print()
        return done.stdout

    def _call(
        self, command: str, given: str | None = None, *, stderr: int = subprocess.PIPE
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            shlex.split(command),
            cwd=self.folder,
            env=self.environment,
            input=given if given is not None else "",
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            timeout=600,
            check=False,
        )

    def _picture(self) -> dict[str, tuple[int, int, int]]:
        """Return every path of the store with its mode, size and time of change."""
        store = self.folder / "store"
        return {
            str(path.relative_to(store)): (status.st_mode, status.st_size, 0 if path.is_dir() else status.st_mtime_ns)
            for path in sorted(store.rglob("*"))
            if path.name != "runs.jsonl"
            for status in [path.lstat()]
        }

    def _paint(self, colour: str, text: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if self.is_coloured else text


def in_kib(size: int) -> str:
    return f"{size / 1024:.0f} KiB"


def _show(said: list[str], lines: int) -> None:
    """Print the first lines and the last, which says what came of it."""
    if len(said) > lines:
        said = [*said[: lines - 1], f"... {len(said) - lines} more lines ...", said[-1]]
    for line in said:
        print(f"  {line}")


def environment_of(folder: Path) -> dict[str, str]:
    """Return an environment in which the demo's commands find each other and nothing of the user's own settings."""
    commands = Path(sys.executable).parent
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPM_", "XDG_", "PYTHON"))}
    return kept | {
        "PYTHONUNBUFFERED": "1",
        "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "SPM_ROOT": str(folder / "store"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
