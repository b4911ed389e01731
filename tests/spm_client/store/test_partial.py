"""Partial files: one writer each, claimed by who comes first once their command is no more."""

import os
from pathlib import Path

import pytest

from manifests.errors import (
    DigestMismatch,
    LimitReached,
    LinkRefused,
    NotFound,
    RegistryTimeout,
    RegistryUnreachable,
    TypeMismatch,
)
from spm_client.store.layout import Layout
from spm_client.store.partial import WORTH_KEEPING, Partials, settle, tidy, unowned

SHA256 = "ab" * 32
OTHER = "cd" * 32
DEAD, LIVING = "host.1-2.00000000", "host.3-4.00000000"


def part(layout: Layout, owner: str, data: bytes = b"0123", sha256: str = SHA256) -> Path:
    folder = layout.root / "partial"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sha256}.{owner}"
    path.write_bytes(data)
    return path


def names(layout: Layout) -> list[str]:
    return sorted(os.listdir(layout.root / "partial"))


@pytest.fixture
def mine(layout: Layout, scratch: Path) -> str:
    """Return what this command's files end in; another command is at work beside it."""
    (layout.tmp / LIVING).mkdir()
    return scratch.name


def test_a_command_without_a_part_writes_to_a_file_of_its_own(layout: Layout, scratch: Path, mine: str) -> None:
    place = Partials(layout, scratch / "0").claim(SHA256, 10)

    assert place == layout.root / "partial" / f"{SHA256}.{mine}"
    assert not place.exists()


def test_the_part_of_a_command_that_is_no_more_is_claimed(layout: Layout, scratch: Path, mine: str) -> None:
    part(layout, DEAD).chmod(0o444)

    place = Partials(layout, scratch).claim(SHA256, 10)

    assert names(layout) == [f"{SHA256}.{mine}"]
    assert (place.read_bytes(), place.stat().st_mode & 0o777) == (b"0123", 0o600)


def plant(path: Path, kind: str) -> None:
    """Put there what spm has not: it holds 4 bytes where it can hold any."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        (path.parent.parent / "foreign").write_bytes(b"0123")
        (path.symlink_to if kind == "link" else path.hardlink_to)(path.parent.parent / "foreign")


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "hard link"])
def test_what_is_no_partial_file_of_ours_is_not_gone_on_with(
    layout: Layout, scratch: Path, mine: str, kind: str
) -> None:
    planted = layout.root / "partial" / f"{SHA256}.{DEAD}"
    plant(planted, kind)
    partials = Partials(layout, scratch)

    place = partials.claim(SHA256, 10)
    assert names(layout) == ([planted.name] if kind == "folder" else [])
    assert not os.path.lexists(place)
    place.write_bytes(b"01")
    partials.leave()

    assert planted.exists() is (kind == "folder")
    if kind.endswith("link"):
        assert (layout.root / "foreign").read_bytes() == b"0123"
        assert (layout.root / "foreign").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("kind", "what"), [("link", "is a symbolic link, the store has none"), ("file", "is no folder")]
)
def test_what_is_in_the_folder_s_place_is_named(layout: Layout, scratch: Path, kind: str, what: str) -> None:
    folder = layout.root / "partial"
    folder.symlink_to("tmp") if kind == "link" else folder.touch()

    with pytest.raises(LinkRefused if kind == "link" else TypeMismatch) as refused:
        Partials(layout, scratch)

    assert (refused.value.message, refused.value.hint) == (
        f"{folder} {what}",
        "spm keeps there what has come of big files: move it elsewhere, and run the command again",
    )
    settle(layout, scratch.name, LimitReached("the disk is full"))
    assert os.path.lexists(folder)


def test_the_part_of_a_command_at_work_is_left_alone(layout: Layout, scratch: Path, mine: str) -> None:
    part(layout, LIVING)

    place = Partials(layout, scratch).claim(SHA256, 10)

    assert not place.exists()
    assert names(layout) == [f"{SHA256}.{LIVING}"]
    assert mine != LIVING


def test_of_two_commands_only_one_gets_a_part(layout: Layout, scratch: Path, mine: str) -> None:
    (layout.tmp / LIVING).mkdir(exist_ok=True)
    part(layout, DEAD)
    both = Partials(layout, scratch), Partials(layout, layout.tmp / LIVING)

    places = [partials.claim(SHA256, 10) for partials in both]

    assert [place.exists() for place in places] == [True, False]
    assert names(layout) == [f"{SHA256}.{mine}"]


def test_the_longest_part_that_can_be_one_is_taken_and_the_others_go(layout: Layout, scratch: Path, mine: str) -> None:
    for number, data in enumerate((b"", b"01", b"01234567", b"0123", b"0123456789!")):
        part(layout, f"dead.{number}", data)
    part(layout, DEAD, sha256=OTHER)

    place = Partials(layout, scratch).claim(SHA256, 10)

    assert place.read_bytes() == b"01234567"
    assert names(layout) == [f"{SHA256}.{mine}", f"{OTHER}.{DEAD}"]


def test_what_a_command_itself_has_stays_its_own(layout: Layout, scratch: Path, mine: str) -> None:
    part(layout, DEAD, b"0123456")
    own = part(layout, mine, b"01")

    assert Partials(layout, scratch).claim(SHA256, 10) == own
    assert (own.read_bytes(), names(layout)) == (b"01", [own.name])


def test_a_link_is_no_part(layout: Layout, scratch: Path) -> None:
    part(layout, DEAD).unlink()
    (layout.root / "partial" / f"{SHA256}.{DEAD}").symlink_to("/etc/passwd")

    place = Partials(layout, scratch).claim(SHA256, 1 << 30)

    assert not os.path.lexists(place)
    assert names(layout) == []


def test_names_that_are_none_are_left_alone(layout: Layout, scratch: Path) -> None:
    for name in ("readme", SHA256, f"{SHA256.upper()}.{DEAD}"):
        (part(layout, DEAD).parent / name).write_bytes(b"")

    Partials(layout, scratch).claim(SHA256, 10).unlink()

    assert names(layout) == sorted(["readme", SHA256, f"{SHA256.upper()}.{DEAD}"])


def test_only_what_is_worth_it_is_left_for_the_next_command(layout: Layout, scratch: Path, mine: str) -> None:
    part(layout, mine, bytes(WORTH_KEEPING))
    part(layout, mine, bytes(WORTH_KEEPING - 1), OTHER)
    part(layout, LIVING, b"0", OTHER)

    Partials(layout, scratch).leave()

    assert names(layout) == [f"{SHA256}.{mine}", f"{OTHER}.{LIVING}"]


def test_the_folder_goes_with_the_last_part(layout: Layout, scratch: Path, mine: str) -> None:
    part(layout, mine)

    Partials(layout, scratch).leave()

    assert not (layout.root / "partial").exists()
    tidy(layout)


@pytest.mark.parametrize("ending", [DigestMismatch("no"), LimitReached("no"), NotFound("no"), OSError(28, "full")])
def test_a_refusal_leaves_nothing_of_what_its_command_has_fetched(
    layout: Layout, mine: str, ending: BaseException
) -> None:
    part(layout, mine)
    part(layout, mine, sha256=OTHER)
    part(layout, LIVING)

    settle(layout, mine, ending)

    assert names(layout) == [f"{SHA256}.{LIVING}"]


@pytest.mark.parametrize("ending", [RegistryUnreachable("no"), RegistryTimeout("no"), KeyboardInterrupt()])
def test_a_network_that_fails_and_a_person_who_stops_leave_all(
    layout: Layout, mine: str, ending: BaseException
) -> None:
    part(layout, mine)

    settle(layout, mine, ending)

    assert names(layout) == [f"{SHA256}.{mine}"]


def test_what_nobody_writes_can_be_found(layout: Layout, mine: str) -> None:
    assert list(unowned(layout)) == []
    dead = part(layout, DEAD)
    part(layout, LIVING)
    part(layout, mine)

    assert list(unowned(layout)) == [dead]
