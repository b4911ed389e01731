"""Fixtures of the tests of `runtime`: an empty signed store, and hosts that leave nothing behind."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from runtime import Host
from tests.runtime.stores import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def open_host() -> Iterator[Callable[..., Host]]:
    """Yield a function that opens a host; all are closed after the test."""
    with ExitStack() as stack:

        def opened(store: Store, **options: Any) -> Host:
            return stack.enter_context(Host(store.root, **options))

        yield opened
