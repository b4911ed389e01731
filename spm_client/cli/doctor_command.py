"""`spm doctor`."""

import argparse
import os
import re
import textwrap

from spm_client.cli.session import Session
from spm_client.render import table, terminal_width
from spm_client.workflows.doctor import Point, examine

_WIDTH = 100
_LEAST = 28
_LONG = re.compile(r"\b([0-9a-f]{16})[0-9a-f]{16,}\b")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "It looks at this host only and asks no registry. Exit 0 when no command would be refused for any of it, "
        "else the exit code of the first problem."
    )


def run(_options: argparse.Namespace, session: Session) -> int:
    search_path = session.environment.get("PATH", os.defpath)
    points = examine(session.layout, now=session.now(), search_path=search_path)
    report = {"points": [point.to_dict() for point in points]}
    if not session.is_json:
        print(_table(points))
    if problem := next((point.refusal for point in points if point.refusal), None):
        session.partial = report
        raise problem
    session.emit(report)
    return 0


def _table(points: tuple[Point, ...]) -> str:
    """Return the points as wide as the terminal: keys and digests by their beginning, paths whole."""
    widths = [max(map(len, column)) for column in zip(*((one.status.value, one.about) for one in points), strict=True)]
    room = max((terminal_width() or _WIDTH) - sum(widths) - 4, _LEAST)
    rows = [
        ("", "", line) if place else (point.status.value, point.about, line)
        for point in points
        for place, line in enumerate(_lines(point.told, room))
    ]
    return table(("", "ABOUT", "WHAT IS FOUND"), rows)


def _lines(text: str, width: int) -> list[str]:
    return textwrap.wrap(_LONG.sub(r"\1…", text), width, break_long_words=False, break_on_hyphens=False) or [""]
