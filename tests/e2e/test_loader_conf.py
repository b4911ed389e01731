"""loader.conf is where trust comes from: a store without a sound one installs and runs nothing."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.commands import Client
from tests.e2e.snapshots import unchanged

pytestmark = pytest.mark.e2e

COMMANDS = [
    ("install", "alpha"),
    ("verify",),
    ("run", "alpha", "--input", "x.json"),
    ("yank", "alpha==1.0.0", "--undo"),
]


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_loader_conf_that_others_may_write_is_refused(client: Client, mode: int) -> None:
    client.conf.chmod(mode)

    with unchanged(client.home):
        refusal = client.spm("install", "alpha")

    refusal.refused(
        26,
        "conf-perms",
        f"{client.conf} has the mode {mode:04o}: its group or everyone may write it, so it cannot say whom to trust",
        f"`chmod go-w {client.conf}`, after a look at what it says",
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_loader_conf_of_another_user_is_refused(client: Client) -> None:
    os.chown(client.conf, 4242, 4242)

    with unchanged(client.home):
        refusal = client.spm("install", "alpha")

    refusal.refused(
        26,
        "conf-perms",
        f"{client.conf} belongs to the user 4242: only root and the user who runs spm (0) may say whom to trust",
        f"`sudo chown root {client.conf}`, after a look at what it says",
    )


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command[0]))
def test_without_a_loader_conf_nothing_is_trusted(client: Client, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "x.json").write_text("[[1.0, 2.0]]")
    client.conf.unlink()

    with unchanged(client.home):
        refusal = client.spm(*(tmp_path / word if word == "x.json" else word for word in command))

    refusal.refused(
        26,
        "conf-missing",
        f"{client.conf} is not there, and without it nothing says whom to trust",
        "get loader.conf from whoever runs your registry, and put it there",
    )


def at_top(text: str) -> str:
    return 'colour = "red"\n' + text


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (at_top, "is refused: `colour` is not a known member"),
        (
            lambda text: text.replace("threshold = 1", "threshold = 1\nthreshhold = 2"),
            "is refused: `core.threshhold` is not a known member",
        ),
        (
            lambda text: text.replace("threshold = 1", "threshold = 2"),
            "is refused: `core.threshold` is 2, but there is only 1 core key",
        ),
        (
            lambda text: "[registry\n",
            "is not TOML: Expected ']' at the end of a table declaration (at line 1, column 10)",
        ),
    ],
    ids=["top", "misspelt", "threshold", "toml"],
)
def test_a_loader_conf_with_a_fault_is_refused_whole(client: Client, edit: Callable[[str], str], why: str) -> None:
    client.trust(edit(client.conf.read_text()))

    with unchanged(client.home):
        refusal = client.spm("install", "alpha")

    refusal.refused(
        26,
        "conf-syntax",
        f"{client.conf} {why}",
        "correct it, or get loader.conf anew from whoever runs your registry (`spm-registry loader-conf`)",
    )
