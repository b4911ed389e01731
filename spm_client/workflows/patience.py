"""How long a command looks for a resolution: a clock for what decides without one. Decides nothing."""

import time
from collections.abc import Callable

RESOLVE_SECONDS = 60.0


def within(seconds: float = RESOLVE_SECONDS) -> Callable[[], bool]:
    """Return what tells, from now on, whether so much time is over."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() > end
