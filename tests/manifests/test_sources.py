"""A plugin's name belongs to exactly one registry, whatever the others have of that name."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from manifests.errors import AmbiguousSource, ConfigMissing, UsageError
from manifests.names import PluginName
from manifests.sources import Claim, Sources, parse_query_of, parse_registry_id

OWN, PX, LAB = "team.example", "px.example", "lab.example"
NAME = PluginName("px-scale")


def sources(**claims: tuple[str, ...]) -> Sources:
    """Return a store's registries: `own`, `px` and `lab` with these claims."""
    ids = {"own": OWN, "px": PX, "lab": LAB}
    return Sources(own=OWN, claims=tuple(Claim(registry=ids[who], names=names) for who, names in claims.items()))


@pytest.mark.parametrize(
    ("claims", "wished", "installed", "expected"),
    [
        pytest.param({}, (), None, OWN, id="one registry has all names"),
        pytest.param({}, (OWN,), OWN, OWN, id="one registry may be named"),
        pytest.param({"px": ("px-*",)}, (), None, PX, id="claimed by one"),
        pytest.param({"px": ("a-*", "px-*")}, (), None, PX, id="claimed by a later pattern"),
        pytest.param({"px": ("px-scale",)}, (PX,), PX, PX, id="claimed, named and installed"),
        pytest.param({"px": ("py-*",)}, (), None, OWN, id="claimed by none"),
        pytest.param({"px": ("px-*",), "lab": ("lab-*",)}, (), None, PX, id="claimed by one of two"),
        pytest.param({"px": ("py-*",)}, (PX,), None, PX, id="claimed by none and named"),
        pytest.param({"px": ("py-*",)}, (PX, PX), None, PX, id="named alike twice"),
        pytest.param({"px": ("py-*",)}, (), PX, PX, id="stays with the registry that it was named with"),
        pytest.param({"own": ("own-*",), "px": ("py-*",)}, (OWN,), None, OWN, id="the own named beyond its claim"),
        pytest.param({"own": ("own-*",), "px": ("py-*",)}, (), OWN, OWN, id="installed before the own claimed names"),
        pytest.param({"own": ("px-*",), "px": ("py-*",)}, (), None, OWN, id="claimed by the own"),
    ],
)
def test_name_belongs_to_one_registry(
    claims: dict[str, tuple[str, ...]], wished: tuple[str, ...], installed: str | None, expected: str
) -> None:
    assert sources(**claims).registry_of(NAME, wished=wished, installed=installed) == expected


@dataclass(frozen=True, kw_only=True)
class Refused:
    claims: dict[str, tuple[str, ...]]
    wished: tuple[str, ...] = ()
    installed: str | None = None
    message: str
    hint: str
    registries: list[str]
    kind: type[Any] = field(default=AmbiguousSource)


REFUSED = {
    "claimed by two": Refused(
        claims={"px": ("px-*",), "lab": ("*-scale",)},
        message="`px-scale` is claimed by `px.example` (`px-*`) and `lab.example` (`*-scale`): a name belongs to "
        "exactly "
        "one registry, so none was asked",
        hint="change `registry.names` in one of the loader.conf files, so that one alone claims it",
        registries=[PX, LAB],
    ),
    "claimed by all three, and naming one does not help": Refused(
        claims={"own": ("*",), "px": ("px-*",), "lab": ("px-scale",)},
        wished=(PX,),
        message="`px-scale` is claimed by `team.example` (`*`), `px.example` (`px-*`) and `lab.example` (`px-scale`): "
        "a "
        "name belongs to exactly one registry, so none was asked",
        hint="change `registry.names` in one of the loader.conf files, so that one alone claims it",
        registries=[OWN, PX, LAB],
    ),
    "named against a claim": Refused(
        claims={"px": ("px-*",), "lab": ("lab-*",)},
        wished=(LAB,),
        message="`lab.example/px-scale` was asked for, but the name is claimed by the registry `px.example` (`px-*`), "
        "so "
        "neither was asked",
        hint="write `px-scale` if that one is meant; if not, change `registry.names` in its loader.conf",
        registries=[LAB, PX],
    ),
    "the own named against a claim": Refused(
        claims={"px": ("px-*",)},
        wished=(OWN,),
        message="`team.example/px-scale` was asked for, but the name is claimed by the registry `px.example` (`px-*`), "
        "so "
        "neither was asked",
        hint="write `px-scale` if that one is meant; if not, change `registry.names` in its loader.conf",
        registries=[OWN, PX],
    ),
    "named with two": Refused(
        claims={"px": ("py-*",), "lab": ("lab-*",)},
        wished=(PX, LAB),
        message="`lab.example/px-scale` and `px.example/px-scale` were asked for: a name belongs to exactly one "
        "registry, so none was asked",
        hint="name one registry everywhere",
        registries=[LAB, PX],
    ),
    "named with one that is not there": Refused(
        claims={"px": ("py-*",)},
        wished=(LAB,),
        message="`lab.example/px-scale` was asked for, but this store knows no registry `lab.example`: it knows "
        "`team.example`, `px.example`",
        hint="get its loader.conf from whoever runs it, and put it at `registries/lab.example/loader.conf` in the "
        "store",
        registries=[LAB],
        kind=ConfigMissing,
    ),
    "claimed by none, and nothing is the own's by default": Refused(
        claims={"own": ("own-*", "base"), "px": ("py-*",)},
        message="no registry of this store claims `px-scale`: its own, `team.example`, is asked for `own-*`, `base` "
        "only",
        hint="name the registry, as in `team.example/px-scale`, or add the name to `registry.names` in the loader.conf "
        "of the one that it belongs to",
        registries=[],
    ),
    "installed from another than claims it": Refused(
        claims={"px": ("px-*",)},
        installed=OWN,
        message="`px-scale` is installed from the registry `team.example`, and would now come from `px.example`, where "
        "that name is another plugin",
        hint="if that one is meant, `spm uninstall px-scale` first",
        registries=[OWN, PX],
    ),
    "installed from another than was named": Refused(
        claims={"px": ("py-*",)},
        wished=(PX,),
        installed=OWN,
        message="`px-scale` is installed from the registry `team.example`, and would now come from `px.example`, where "
        "that name is another plugin",
        hint="if that one is meant, `spm uninstall px-scale` first",
        registries=[OWN, PX],
    ),
    "installed from one that is no longer there": Refused(
        claims={"px": ("py-*",)},
        installed=LAB,
        message="`px-scale` is installed from the registry `lab.example`, which this store no longer knows",
        hint="put `registries/lab.example/loader.conf` back, or `spm uninstall px-scale` first",
        registries=[LAB],
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_contradiction_is_refused(case: Refused) -> None:
    with pytest.raises(case.kind) as caught:
        sources(**case.claims).registry_of(NAME, wished=case.wished, installed=case.installed)

    assert (caught.value.message, caught.value.hint) == (case.message, case.hint)
    assert caught.value.context == {"name": "px-scale", "registries": case.registries}


@pytest.mark.parametrize(
    "text", ["../x", "", ".", "..", "/etc", "Team", "a_b", "-a", "a.", "a" * 65, "a\n", "a\x1b[2J"]
)
def test_what_is_no_registry_s_id_is_refused_and_shown_harmlessly(text: str) -> None:
    for parse in (parse_registry_id, lambda text: parse_query_of(f"{text}/mel")):
        with pytest.raises(UsageError) as refused:
            parse(text)
        assert (refused.value.message, refused.value.hint) == (
            f"{text!r} is not a registry's id: an id is of a-z, 0-9, `.` and `-`, begins and ends with one of a-z and "
            "0-9, and has 64 characters at most",
            "`spm doctor` shows the registries that this store knows",
        )


def test_a_plugin_may_be_asked_for_with_its_registry() -> None:
    assert parse_query_of("Log_Mel") == (None, "log-mel")
    assert parse_query_of("px.example/log-mel") == ("px.example", "log-mel")


def test_patterns_tell_upper_from_lower_case_and_cover_whole_names() -> None:
    claim = Claim(registry=PX, names=("px-?",))

    assert [claim.pattern_for(name) for name in ("px-1", "px-12", "apx-1", "PX-1")] == ["px-?", None, None, None]


def test_the_own_registry_is_known_first() -> None:
    assert sources(px=("px-*",), lab=("lab-*",), own=("own-*",)).known == (OWN, LAB, PX)
