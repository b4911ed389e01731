"""What a plugin's code raised, in words for the host: one line, and the traceback without our own frames."""

import importlib
import os
from traceback import StackSummary, TracebackException
from typing import Any

from runtime.protocol import MAX_TEXT

MAX_LINE = MAX_TEXT // 16
MAX_TRACEBACK = MAX_TEXT // 4

_OWN_FOLDER = os.path.dirname(__file__) + os.sep
_IMPORTING = ("<frozen importlib", importlib.__file__)


def told_of(error: BaseException) -> dict[str, Any]:
    """Return the members `error` and `traceback` of a `failed` message, bounded; of the traceback the end is kept.

    A traceback that would only say the line again is empty.
    """
    told = TracebackException.from_exception(error)
    _drop_own_frames(told)
    whole = "".join(told.format())
    line = _line(told)
    shown = "" if whole.strip() == line else whole
    return {"error": (line + _place(told))[:MAX_LINE], "traceback": shown[-MAX_TRACEBACK:]}


def _line(told: TracebackException) -> str:
    # Notes would come after the line that says what was raised; they stay in the traceback.
    told.__notes__ = None
    return list(told.format_exception_only())[-1].strip()


def _place(told: TracebackException) -> str:
    if told.exc_type is not None and issubclass(told.exc_type, SyntaxError) and told.filename and told.lineno:
        return f" ({os.path.basename(told.filename)}, line {told.lineno})"
    return ""


def _drop_own_frames(told: TracebackException) -> None:
    waiting: list[TracebackException | None] = [told]
    while waiting:
        one = waiting.pop()
        if one is not None:
            one.stack = StackSummary.from_list([frame for frame in one.stack if not _is_ours(frame.filename)])
            waiting += [one.__cause__, one.__context__, *(one.exceptions or ())]


def _is_ours(filename: str) -> bool:
    return filename.startswith((_OWN_FOLDER, *_IMPORTING))
