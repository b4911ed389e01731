"""What an uninstall takes away: the named plugins and what was installed only for them."""

import pytest

from manifests.errors import NotFound, Unsatisfiable
from manifests.lockfile import Generation, InstalledEntry
from manifests.names import PluginName
from manifests.parts import PluginType
from manifests.versions import Version
from spm_client.workflows.uninstall import plan


def installed(text: str) -> Generation:
    """Read `alpha! -> beta gamma; beta`: `!` marks what was asked for, the arrow what it requires."""
    entries = []
    for one in text.split(";"):
        name, _, requires = one.strip().partition(" -> ")
        entries.append(
            InstalledEntry(
                name=PluginName(name.removesuffix("!")),
                version=Version.parse("1.0.0"),
                release="1.0.0",
                manifest_sha256="ab" * 32,
                type=PluginType.EXT,
                keyids=(),
                requested=name.endswith("!"),
                requires=tuple(map(PluginName, requires.split())),
            )
        )
    return Generation(number=1, registry="team.example", created="2026-01-31T12:00:00Z", plugins=tuple(entries))


def names(text: str) -> tuple[PluginName, ...]:
    return tuple(map(PluginName, text.split()))


@pytest.mark.parametrize(
    ("store", "named", "gone"),
    [
        ("a!", "a", "a"),
        ("a!; b!", "a", "a"),
        ("a! -> b; b", "a", "a b"),
        ("a! -> b; b!", "a", "a"),
        ("a! -> b; b -> c; c", "a", "a b c"),
        ("a! -> c; b! -> c; c", "a", "a"),
        ("a! -> c; b! -> c; c", "a b", "a b c"),
        ("a! -> b; b!", "a b", "a b"),
        ("a! -> b; b -> c; c -> b", "a", "a b c"),
        ("a! -> b; b -> a", "a b", "a b"),
        ("a! -> a", "a", "a"),
        ("a! -> b; b; d! -> e; e -> f; f", "a", "a b"),
        ("a! -> b; b -> c; c!; d -> c", "a", "a b d"),
    ],
)
def test_what_nothing_kept_requires_goes_too(store: str, named: str, gone: str) -> None:
    base = installed(store)

    assert tuple(entry.name for entry in plan(base, names(named))) == names(gone)
    assert base == installed(store)


@pytest.mark.parametrize(
    ("store", "named", "message", "hint", "required_by"),
    [
        (
            "a! -> b; b",
            "b",
            "`b` cannot be removed: `a` requires it",
            "remove both: `spm uninstall a b`",
            ["a"],
        ),
        (
            "a! -> c; b! -> c; c",
            "c",
            "`c` cannot be removed: `a`, `b` require it",
            "remove all: `spm uninstall a b c`",
            ["a", "b"],
        ),
        (
            "a! -> b; b -> c; c; d!",
            "d c",
            "`c` cannot be removed: `b` requires it",
            "remove all: `spm uninstall a b c d`",
            ["b"],
        ),
    ],
)
def test_what_is_required_stays_and_the_hint_names_all_that_must_go(
    store: str, named: str, message: str, hint: str, required_by: list[str]
) -> None:
    with pytest.raises(Unsatisfiable) as refused:
        plan(installed(store), names(named))

    assert (refused.value.message, refused.value.hint) == (message, hint)
    assert refused.value.context["required_by"] == required_by
    followed = names(hint.split("`")[1].removeprefix("spm uninstall "))
    assert len(plan(installed(store), followed)) == len(followed)


def test_what_is_not_installed_cannot_be_removed() -> None:
    with pytest.raises(NotFound) as refused:
        plan(installed("a!"), names("a b"))

    assert (refused.value.message, refused.value.hint) == ("`b` is not installed", "`spm list` shows what is")
