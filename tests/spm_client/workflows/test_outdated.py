"""Which releases are not the newest, and the first fact that keeps each back."""

from manifests.index import ReleaseEntry, VariantEntry
from manifests.names import PluginName
from manifests.parts import PluginType, Requires
from manifests.ranges import Range
from manifests.versions import Version
from spm_client.workflows.outdated import INSTALLED, LOCKED, Held, Outdated, Want, outdated
from tests.manifests.builders import DIGEST
from tests.spm_client.workflows.team_project import CPU

TOML = Want(by="spm.toml", range=Range.parse("^1.0"))
BUILD = VariantEntry(variant=None, manifest_sha256=DIGEST, manifest_size=1, signatures=(), blobs_size=1)


def release(version: str, *, yanked: str | None = None, torch: str = "", **requires: str) -> ReleaseEntry:
    return ReleaseEntry(
        version=Version.parse(version),
        type=PluginType.EXT,
        seedance_version=Range.parse("*"),
        requires=Requires(
            plugins=tuple((PluginName(name), Range.parse(text)) for name, text in requires.items()),
            torch=Range.parse(torch) if torch else None,
        ),
        variants=(BUILD,),
        yanked=yanked,
    )


def held(version: str, *wants: Want, name: str = "alpha", is_pre: bool = False) -> Held:
    return Held(
        name=PluginName(name),
        version=Version.parse(version),
        targets={"cpu": CPU},
        wants=wants,
        is_pre=is_pre,
    )


def look(one: Held, *releases: ReleaseEntry, others: tuple[Held, ...] = (), kind: str = LOCKED) -> Outdated | None:
    found = outdated((one, *others), lambda name: releases if name == one.name else (), kind=kind)
    return found[0] if found else None


def told(found: Outdated | None) -> tuple[str | None, str | None, str]:
    assert found is not None
    value = found.to_dict()
    return value["in_range"], value["newest"], value["kept_back_by"]


def test_the_newest_is_not_outdated() -> None:
    assert look(held("1.1.0", TOML), release("1.0.0"), release("1.1.0")) is None


def test_what_only_the_lock_holds_back_names_the_command() -> None:
    found = look(held("1.0.0", TOML), release("1.0.0"), release("1.1.0"))

    assert told(found) == ("1.1.0", "1.1.0", "it is locked: `spm upgrade alpha` takes 1.1.0")


def test_what_is_installed_names_its_own_command() -> None:
    found = look(held("1.0.0"), release("1.0.0"), release("2.0.0"), kind=INSTALLED)

    assert told(found) == ("2.0.0", "2.0.0", "it is installed: `spm install alpha` takes 2.0.0")


def test_a_range_keeps_back_and_says_whose_it_is() -> None:
    other = Want(by="beat 1.0.0", range=Range.parse("<1.1"))

    found = look(held("1.0.0", TOML, other), release("1.0.0"), release("1.1.0"), release("2.0.0"))

    assert told(found) == ("1.0.0", "2.0.0", "spm.toml wants `^1.0` and beat 1.0.0 wants `<1.1`")


def test_a_newer_one_in_range_is_told_before_the_range() -> None:
    found = look(held("1.0.0", TOML), release("1.0.0"), release("1.1.0"), release("2.0.0"))

    assert told(found) == ("1.1.0", "2.0.0", "it is locked: `spm upgrade alpha` takes 1.1.0")


def test_a_fact_of_a_target_keeps_back() -> None:
    found = look(held("1.0.0", TOML), release("1.0.0"), release("1.1.0", torch=">=3,<4"))

    assert told(found) == (
        "1.1.0",
        "1.1.0",
        "1.1.0 needs torch `>=3,<4`, and the target has 2.13.0 (`cpu`)",
    )


def test_another_plugin_keeps_back() -> None:
    found = look(
        held("1.0.0", TOML), release("1.0.0"), release("1.1.0", beta="^2.0"), others=(held("1.5.0", name="beta"),)
    )

    assert told(found) == ("1.1.0", "1.1.0", "1.1.0 requires `beta` `^2.0`, and 1.5.0 is there")


def test_a_yanked_release_is_told_of_though_it_is_the_newest() -> None:
    found = look(held("1.1.0", TOML), release("1.0.0"), release("1.1.0", yanked="wrong weights"))

    assert found is not None
    assert found.to_dict() == {
        "name": "alpha",
        "version": "1.1.0",
        "targets": ["cpu"],
        "in_range": "1.0.0",
        "newest": "1.0.0",
        "yanked": "wrong weights",
        "kept_back_by": "",
    }


def test_pre_releases_count_only_where_they_are_let_in() -> None:
    releases = (release("1.0.0"), release("1.1.0-rc.1"))

    assert look(held("1.0.0", TOML), *releases) is None
    assert told(look(held("1.0.0", TOML, is_pre=True), *releases))[1] == "1.1.0-rc.1"


def test_a_plugin_of_which_nothing_is_offered_any_more_is_told_of_if_it_is_yanked() -> None:
    found = look(held("1.0.0", TOML), release("1.0.0", yanked="broken"))

    assert found is not None
    assert (found.in_range, found.newest, found.yanked) == (None, None, "broken")
