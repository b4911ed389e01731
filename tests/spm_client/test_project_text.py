"""The text of a spm.toml: an edit changes the line that it is for, and nothing else."""

import pytest

from manifests.devices import parse_affinity
from manifests.errors import ConfigSyntax
from manifests.lockfile import Bindings
from manifests.names import PluginName
from manifests.project import Project, ProjectRequirement
from manifests.ranges import Range
from spm_client.project_text import new_text, with_names, with_requirement, without_requirement
from tests.manifests.builders import refused

WRITTEN = """# Who reads this: ask Ada first.
[project]
name = "speech"  # not "speach"

# what we need
[requirements]
beta = "^1.0"   # 2.0 is too slow
gamma = { range = "^2.0", pre = true } # for now

# our hosts
[targets]
gpu = "gpu.json"
"""


def wanted(name: str, text: str = "^1.0", **more: object) -> ProjectRequirement:
    return ProjectRequirement(name=PluginName(name), range=Range.parse(text), **more)  # type: ignore[arg-type]


def test_a_new_project_is_one_that_can_be_read() -> None:
    text = new_text("speech", registry="team.example", target="linux-x86_64", target_file="targets/linux-x86_64.json")

    assert text == (
        '[project]\nname = "speech"\nregistry = "team.example"\n\n'
        '# `spm add NAME` writes here: NAME = "RANGE".\n[requirements]\n\n'
        "# The hosts that spm.lock is for; `spm target probe` describes one.\n"
        '[targets]\nlinux-x86_64 = "targets/linux-x86_64.json"\n'
    )
    assert Project.from_text(text).targets == (("linux-x86_64", "targets/linux-x86_64.json"),)


def test_a_first_requirement_stands_above_what_follows() -> None:
    text = new_text("speech", registry=None, target="a.b", target_file="targets/a.b.json")

    added = with_requirement(with_requirement(text, wanted("beta")), wanted("alpha"))

    assert added == text.replace("[requirements]\n", '[requirements]\nbeta = "^1.0"\nalpha = "^1.0"\n')
    assert Project.from_text(added).targets == (("a.b", "targets/a.b.json"),)


def test_an_added_requirement_goes_below_the_others() -> None:
    added = with_requirement(WRITTEN, wanted("alpha"))

    assert added == WRITTEN.replace("# for now\n", '# for now\nalpha = "^1.0"\n')


def test_a_changed_range_keeps_the_comment_beside_it() -> None:
    assert with_requirement(WRITTEN, wanted("beta", "^1.2")) == WRITTEN.replace('"^1.0"   #', '"^1.2"   #')


def test_a_requirement_as_it_is_written_changes_nothing() -> None:
    same = with_requirement(with_requirement(WRITTEN, wanted("beta")), wanted("gamma", "^2.0", is_pre=True))

    assert same == WRITTEN


def test_options_make_a_table_of_a_range_and_their_end_a_range_of_a_table() -> None:
    bound = wanted("beta", bindings=Bindings(affinity=parse_affinity(["cuda:0", "cpu"])), is_fallback_accepted=True)

    changed = with_requirement(with_requirement(WRITTEN, bound), wanted("gamma", "^2.0"))

    assert changed == WRITTEN.replace(
        'beta = "^1.0"   #', 'beta = {range = "^1.0", accept-fallback = true, affinity = ["cuda:0", "cpu"]}   #'
    ).replace('{ range = "^2.0", pre = true } #', '"^2.0" #')


def test_a_removed_requirement_takes_its_line_and_no_other() -> None:
    removed = without_requirement(WRITTEN, PluginName("beta"))

    assert removed == WRITTEN.replace('beta = "^1.0"   # 2.0 is too slow\n', "")


def test_a_requirement_in_a_table_of_its_own_is_changed_in_place() -> None:
    text = '[project]\nname = "a"\n[requirements.beta]\nrange = "*"  # any\npre = true\n[targets]\na = "a"\n'

    changed = with_requirement(text, wanted("beta", is_fallback_accepted=True))

    assert changed == (
        '[project]\nname = "a"\n[requirements.beta]\nrange = "^1.0"  # any\naccept-fallback = true\n'
        '[targets]\na = "a"\n'
    )


def test_names_are_added_to_the_list_that_is_there() -> None:
    once = with_names(WRITTEN, "pre", [PluginName("zeta")])

    assert once == WRITTEN + '\n[resolution]\npre = ["zeta"]\n'
    assert with_names(once, "pre", [PluginName("zeta"), PluginName("eta")]) == once.replace(
        '["zeta"]', '["zeta", "eta"]'
    )
    assert with_names(WRITTEN, "pre", []) == WRITTEN


@pytest.mark.parametrize(
    "text",
    [
        'requirements = {beta = "*"}\nproject = {name = "a"}\ntargets = {a = "a"}\n',
        'requirements.beta = "*"\nproject.name = "a"\ntargets.a = "a"\n',
        '[targets]\na = "a"\n[project]\nname = "a"\n',
        '[requirements.beta]\nrange = "*"\n[project]\nname="a"\n[requirements.gamma]\nrange = "*"\n[targets]\na="b"\n',
        '[project]\r\nname = "a"\r\n\r\n[requirements]\r\nbeta = "*"\r\n\r\n[targets]\r\na = "a"\r\n',
    ],
)
def test_other_forms_of_a_document_are_edited_to_the_same_meaning(text: str) -> None:
    before = Project.from_text(text)

    after = Project.from_text(with_requirement(text, wanted("alpha", is_pre=True)))

    assert after.find("alpha") == wanted("alpha", is_pre=True)
    assert [one for one in after.requirements if one.name != "alpha"] == list(before.requirements)
    assert after.targets == before.targets


def test_what_is_no_toml_cannot_be_edited() -> None:
    message = refused(lambda: with_requirement("[requirements", wanted("alpha")), ConfigSyntax)

    assert message.startswith("spm.toml cannot be edited: ")


@pytest.mark.parametrize(
    "text",
    [
        'requirements.alpha = "^1.0"\nproject.name = "p"\nrequirements.beta = "^1.0"\ntargets.here = "here.json"\n',
        '[project]\nname = "p"\n[requirements.alpha]\nrange = "^1.0"\n[targets]\nhere = "here.json"\n'
        '[requirements.beta]\nrange = "^1.0"\n',
        '[project]\nname = "p"\n[requirements]\nbeta = "^1.0"\n[targets]\nhere = "here.json"\n'
        '[requirements.alpha]\nrange = "^1.0"\n',
    ],
)
def test_tables_out_of_order_and_dotted_keys_are_edited_to_the_same_meaning(text: str) -> None:
    without = Project.from_text(without_requirement(text, PluginName("alpha")))
    changed = Project.from_text(with_requirement(text, wanted("alpha", "^2.0")))

    assert [str(one.name) for one in without.requirements] == ["beta"]
    assert [(one.name, one.range.text) for one in changed.requirements] == [("alpha", "^2.0"), ("beta", "^1.0")]


def test_whatever_the_editor_raises_is_a_refusal_that_names_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> None:
        raise AttributeError(f"no {len(text)}")

    monkeypatch.setattr("spm_client.project_text._parsed", fail)

    assert refused(lambda: without_requirement(WRITTEN, PluginName("beta")), ConfigSyntax) == (
        "`requirements` of spm.toml is written in a form that cannot be edited: with dotted keys, or in tables that "
        "do not follow one another; nothing was changed"
    )
