"""The grammar of paths in a file table, and when two would collide. Touches no file."""

import re

from manifests.errors import PathRefused

MAX_PATH_LENGTH = 1024
MAX_SEGMENT_LENGTH = 200
_SEGMENT = re.compile(r"[A-Za-z0-9._+-]+")


def check_path(path: str) -> str:
    """Return the path if a file table may hold it.

    Raises: PathRefused unless it is `/`-joined segments of `[A-Za-z0-9._+-]`, none of them `.` or `..`, within bounds.
    """
    segments = path.split("/") if isinstance(path, str) and len(path) <= MAX_PATH_LENGTH else [""]
    for segment in segments:
        if not _SEGMENT.fullmatch(segment) or segment in {".", ".."} or len(segment) > MAX_SEGMENT_LENGTH:
            raise PathRefused(
                f"the path {str(path)[:120]!r} is refused: each part is 1 to {MAX_SEGMENT_LENGTH} characters of "
                "A-Z a-z 0-9 . _ + - and is neither `.` nor `..`",
                path=str(path)[:MAX_PATH_LENGTH],
            )
    return path


def check_distinct(paths: list[str]) -> None:
    """Refuse paths of which two are one file on a case-folding disk, or one is a folder of another.

    Raises: PathRefused naming both.
    """
    seen: dict[str, str] = {}
    for path in paths:
        if (other := seen.get(path.lower())) is not None:
            raise PathRefused(f"the paths {other!r} and {path!r} are one file where case is folded", path=path)
        seen[path.lower()] = path
    for path in paths:
        parts = path.lower().split("/")
        for depth in range(1, len(parts)):
            if (other := seen.get("/".join(parts[:depth]))) is not None:
                raise PathRefused(f"the path {other!r} is both a file and a folder of {path!r}", path=path)
