"""A store that others could change: nothing is installed into it, and nothing in it is called verified."""

import pytest

from tests.e2e.commands import Client
from tests.e2e.snapshots import unchanged

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("mode", [0o775, 0o777])
def test_a_store_that_others_may_write_is_refused(client: Client, mode: int) -> None:
    client.store.chmod(mode)

    with unchanged(client.home):
        refusal = client.spm("install", "alpha")

    refusal.refused(
        26,
        "conf-perms",
        f"{client.store} has the mode {mode:04o}: its group or everyone may change what is installed",
        f"`chmod go-w {client.store}`, after a look at what is in it",
    )
