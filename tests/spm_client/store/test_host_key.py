"""The store's host key: made once, read ever after, never replaced without a word."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from keys.public_key import pem_of
from manifests.errors import ConfigPermissions, ConfigSyntax
from spm_client.store.host_key import host_key
from spm_client.store.layout import Layout

OTHER = pem_of(ec.generate_private_key(ec.SECP256R1()).public_key())


def numbers(layout: Layout, scratch: Path) -> int:
    return host_key(layout, scratch).private_numbers().private_value


def test_the_key_is_made_when_it_is_first_needed_and_stays(layout: Layout, scratch: Path) -> None:
    first = numbers(layout, scratch)

    assert numbers(layout, scratch) == first
    assert stat.S_IMODE(layout.host_key.stat().st_mode) == 0o600
    assert list(scratch.iterdir()) == []
    assert host_key(Layout(layout.root.parent), layout.root).private_numbers().private_value != first


def test_a_lost_public_half_is_written_again(layout: Layout, scratch: Path) -> None:
    first = numbers(layout, scratch)
    public = layout.host_public_key.read_bytes()
    layout.host_public_key.unlink()

    assert numbers(layout, scratch) == first
    assert layout.host_public_key.read_bytes() == public


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o622])
def test_a_key_that_others_may_use_is_refused(layout: Layout, scratch: Path, mode: int) -> None:
    numbers(layout, scratch)
    layout.host_key.chmod(mode)

    with pytest.raises(ConfigPermissions) as caught:
        host_key(layout, scratch)

    assert caught.value.message == (
        f"{layout.host_key} has the mode {mode:04o}: others than its owner may use this private key"
    )


def make_folder_of_the_key(layout: Layout) -> None:
    layout.host_key.unlink()
    layout.host_key.mkdir(0o700)


DAMAGE: dict[str, tuple[Callable[[Layout], object], str]] = {
    "the key is gone": (
        lambda layout: layout.host_key.unlink(),
        "{root}/host.pub is there, but {root}/host.key is not",
    ),
    "the key is damaged": (
        lambda layout: layout.host_key.write_bytes(b"damaged"),
        "{root}/host.key cannot be used: it is not a private key in PKCS #8 PEM",
    ),
    "the key is a folder": (
        make_folder_of_the_key,
        "the key file {root}/host.key cannot be read: Is a directory",
    ),
    "the public half is another key's": (
        lambda layout: layout.host_public_key.write_bytes(OTHER),
        "{root}/host.pub is not the public half of {root}/host.key",
    ),
    "the public half is a link": (
        lambda layout: layout.host_public_key.symlink_to(layout.host_public_key.rename(layout.root / "moved")),
        "{root}/host.pub is a symbolic link, the store has none",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_key_is_refused_and_stays_as_it_is(layout: Layout, scratch: Path, name: str) -> None:
    numbers(layout, scratch)
    damage, why = DAMAGE[name]
    damage(layout)
    before = {path: path.lstat() for path in layout.root.rglob("*")}

    with pytest.raises(ConfigSyntax) as caught:
        host_key(layout, scratch)

    assert (caught.value.exit_code, caught.value.reason, caught.value.message) == (
        26,
        "conf-syntax",
        f"the host key of the store `{layout.root}` cannot be used: {why.format(root=layout.root)}",
    )
    assert caught.value.hint == (
        f"restore it, or remove `{layout.host_key}` and `{layout.host_public_key}` and run `spm verify`: it makes "
        "a new one and renews every receipt"
    )
    assert {path: path.lstat().st_ctime_ns for path in layout.root.rglob("*")} == {
        path: status.st_ctime_ns for path, status in before.items()
    }
