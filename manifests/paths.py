"""The grammar of paths in a file table, and when two would collide. Touches no file."""

import re

from manifests.errors import PathRefused

MAX_PATH_LENGTH = 1024
MAX_SEGMENT_LENGTH = 200
_SEGMENT = rf"(?!\.{{1,2}}(?:/|\Z))[A-Za-z0-9._+-]{{1,{MAX_SEGMENT_LENGTH}}}"
_PATH = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*")


def check_path(path: str) -> str:
    """Return the path if a file table may hold it.

    Raises: PathRefused unless it is `/`-joined segments of `[A-Za-z0-9._+-]`, none of them `.` or `..`, within bounds.
    """
    if not isinstance(path, str) or len(path) > MAX_PATH_LENGTH or not _PATH.fullmatch(path):
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
        folded = path.lower()
        if folded in seen:
            raise PathRefused(f"the paths {seen[folded]!r} and {path!r} are one file where case is folded", path=path)
        seen[folded] = path
    folders: set[str] = set()
    for folded, path in seen.items():
        folder = folded.rpartition("/")[0]
        while folder and folder not in folders:
            if (other := seen.get(folder)) is not None:
                raise PathRefused(f"the path {other!r} is both a file and a folder of {path!r}", path=path)
            folders.add(folder)
            folder = folder.rpartition("/")[0]
