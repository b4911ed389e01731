"""Progress on a real terminal, at any width, and nowhere else; what follows it is never garbled."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.fakes.served_files import ServedFiles
from tests.fakes.simulated_registry import SimulatedRegistry

SCRIPT = """
import sys, time
from spm_client.cli.session import Session
from spm_client.cli.command import report
from manifests.errors import DigestMismatch
from spm_client.progress import phase
from spm_client.render import ProgressLine

session = Session(is_json="--json" in sys.argv, environment=dict(__import__("os").environ))
progress = ProgressLine(is_wanted=session.wants_progress)
with phase(progress, "Resolving", noun="plugin") as advance:
    for _ in range(3):
        time.sleep(0.12)
        advance(1)
advance = progress("Downloading", 40 << 20)
for _ in range(4):
    time.sleep(0.12)
    advance(5 << 20)
if "fail" in sys.argv:
    sys.exit(report(DigestMismatch("it is another file", hint="ask for it again"), session))
advance(20 << 20)
print("installed  tone 1.0.0 (ext)")
"""
DONE = ["installed  tone 1.0.0 (ext)"]
FAILED = ["error[digest]: it is another file", "  hint: ask for it again"]


def run(
    width: int, *words: str, is_stderr_a_terminal: bool = True, environment: dict[str, str] | None = None
) -> tuple[list[str], str]:
    """Run the script on a terminal of this width; return the lines that stand there at its end, and all it was sent."""
    command = [sys.executable, "-c", SCRIPT, *words]
    return on_a_terminal(width, command, is_stderr_a_terminal=is_stderr_a_terminal, environment=environment or {})


def on_a_terminal(
    width: int, command: list[str], *, is_stderr_a_terminal: bool = True, environment: dict[str, str]
) -> tuple[list[str], str]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs if is_stderr_a_terminal else subprocess.DEVNULL,
        cwd=Path(__file__).parents[3],
        env={"PATH": os.environ["PATH"], "TERM": "xterm", **environment},
    ) as process:
        os.close(theirs)
        sent = b""
        while chunk := _read(ours):
            sent += chunk
        process.wait(30)
    os.close(ours)
    text = sent.decode()
    return screen(text, width), text


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # Linux says so when the other end is closed.
        return b""


def screen(text: str, width: int) -> list[str]:
    """Return what stands on a terminal that knows returns and line feeds, and wraps; escapes are not known to it."""
    assert "\x1b" not in text
    lines, row, column = [""], 0, 0
    for letter in text:
        if letter == "\r":
            column = 0
        elif letter == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        else:
            if column == width:
                row, column = row + 1, 0
                lines += [""] * (row + 1 - len(lines))
            lines[row] = lines[row].ljust(column)[:column] + letter + lines[row][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines if line.strip()]


@pytest.mark.parametrize("width", [200, 80, 40, 20])
def test_what_follows_a_phase_stands_alone_on_the_screen(width: int) -> None:
    done, drawn = run(width)
    failed, _ = run(width, "fail")

    assert done == [line[start : start + width].rstrip() for line in DONE for start in range(0, len(line), width)]
    assert failed == [line[start : start + width] for line in FAILED for start in range(0, len(line), width)]
    assert "Resolving 2 plugins" in drawn
    assert "Downloading" in drawn
    assert max(len(part) for part in drawn.replace("\n", "\r").split("\r")) <= max(width, len(DONE[0]))


def test_rate_and_bar_are_drawn_where_there_is_room() -> None:
    _, drawn = run(100)

    assert "Downloading  [############------------]  20.0 MiB of 40.0 MiB" in drawn


@pytest.mark.parametrize("environment", [{"LANG": "C"}, {"LC_ALL": "C", "PYTHONIOENCODING": "latin-1"}])
def test_a_terminal_without_unicode_shows_it_too(environment: dict[str, str]) -> None:
    assert run(80, environment=environment)[0] == DONE


@pytest.mark.parametrize(
    ("words", "is_terminal", "environment"),
    [(["--json"], True, {}), ([], False, {}), ([], True, {"TERM": "dumb"})],
)
def test_it_is_quiet_where_nobody_looks(words: list[str], is_terminal: bool, environment: dict[str, str]) -> None:
    assert run(80, *words, is_stderr_a_terminal=is_terminal, environment=environment)[1] == f"{DONE[0]}\r\n"


@pytest.mark.parametrize("width", [100, 40])
def test_an_install_shows_its_phases_and_leaves_what_it_did(tmp_path: Path, width: int) -> None:
    registry = SimulatedRegistry()
    registry.publish("tone")
    registry.publish("beat", requires=["tone"])
    root = tmp_path / "store"
    root.mkdir()
    spm = [str(Path(sys.executable).with_name("spm")), "install", "--root", str(root)]

    with ServedFiles(registry.file) as served:
        (root / "loader.conf").write_text(registry.loader_conf(served.url))
        done, drawn = on_a_terminal(width, [*spm, "beat"], environment={"HOME": str(tmp_path)})
        failed, _ = on_a_terminal(width, [*spm, "baet"], environment={"HOME": str(tmp_path)})

    told = ["installed  beat 1.0.0 (ext)", "installed  tone 1.0.0 (ext), required by another plugin"]
    assert done == [line[start : start + width].rstrip() for line in told for start in range(0, len(line), width)]
    for phase in ("Resolving", "Verifying", "Downloading", "Installing"):
        assert f"\r{phase} " in drawn
    assert "".join(failed).startswith("error[not-found]: the registry `")
