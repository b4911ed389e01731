"""Every reason of exit 20 to 26 has a real command that ends in it, with its whole message, and changes nothing."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from manifests.errors import SpmError
from tests.e2e.reason_attacks import ATTACKS, Attack
from tests.e2e.reason_scene import HELD, Scene
from tests.e2e.snapshots import unchanged
from tests.house.rooms import ROOT, trees

FAMILIES = range(20, 27)

# What is proven elsewhere in this folder, on a machine that has something installed: a command's answer is held to the
# whole message (`.refused`), and the machine to what it was (`unchanged`, which `scene.refused` has in it).
COVERED = {
    "sig-invalid": "test_signed_index.py::test_metadata_with_another_byte_is_not_what_was_signed",
    "key-revoked": "test_signed_index.py::test_a_revocation_is_told_at_verify_and_run_without_the_registry",
    "index-expired": "test_signed_index.py::test_a_frozen_index_ends_with_its_expiry",
    "root-expired": "test_signed_index.py::test_a_root_that_nobody_renews_is_expired_for_every_command_that_asks",
    "rollback": "test_signed_index.py::test_an_index_from_before_what_was_seen_is_a_rollback",
    "fork": "test_signed_index.py::test_two_indexes_of_one_version_are_a_fork",
    "mix": "test_signed_index.py::test_a_snapshot_of_another_moment_is_a_mix",
    "digest": "test_signed_index.py::test_a_shard_of_other_bytes_is_refused_by_its_digest",
    "size": "test_signed_index.py::test_a_shard_that_is_cut_is_refused_by_its_size",
    "file-set": "test_installed_trees.py::test_a_damaged_tree_is_not_verified_and_is_mended_by_an_install",
    "link": "test_installed_trees.py::test_a_damaged_tree_is_not_verified_and_is_mended_by_an_install",
    "type": "test_installed_trees.py::test_a_damaged_tree_is_not_verified_and_is_mended_by_an_install",
    "too-big": "test_signed_index.py::test_metadata_without_end_is_too_big",
}


def kinds(kind: type[SpmError]) -> Iterator[type[SpmError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from kinds(child)


TRUST_KINDS = {kind.__name__: kind for kind in kinds(SpmError) if kind.exit_code in FAMILIES}
REASONS = {kind.default_reason: kind.exit_code for kind in TRUST_KINDS.values()}


def test_every_reason_is_proven_by_a_command() -> None:
    assert {attack.reason: attack.exit for attack in ATTACKS}.items() <= REASONS.items()
    assert REASONS.keys() ^ (COVERED.keys() | {attack.reason for attack in ATTACKS}) == set()


def test_no_code_gives_these_families_a_reason_that_no_kind_has() -> None:
    given = {
        (name, keyword.value.value)
        for name, tree in trees()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in TRUST_KINDS
        for keyword in call.keywords
        if keyword.arg == "reason" and isinstance(keyword.value, ast.Constant)
    }

    assert given
    assert {(name, reason) for name, reason in given if reason not in REASONS} == set()


def test_every_kind_of_these_families_stands_in_the_tree_of_errors() -> None:
    outside = {
        (name, node.name)
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and {ast.unparse(base).rpartition(".")[2] for base in node.bases} & {*TRUST_KINDS}
        if name != "manifests/errors.py"
    }

    assert outside == set()


@cache
def functions_of(file: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse((ROOT / "tests" / "e2e" / file).read_text("utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("reason", "place"), COVERED.items(), ids=COVERED)
def test_what_is_proven_elsewhere_is_there_and_holds_message_and_state(reason: str, place: str) -> None:
    file, _, name = place.partition("::")

    function = functions_of(file)[name]

    nodes = list(ast.walk(function))
    calls = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
    assert reason in {node.value for node in nodes if isinstance(node, ast.Constant)}
    assert {call for call in calls if call.endswith(".refused")}
    assert calls & {"unchanged", "scene.refused"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Scene.founded(tmp_path_factory.mktemp("reasons")) as founded:
        yield founded


@pytest.fixture
def scene(base: Scene, tmp_path: Path) -> Iterator[Scene]:
    (tmp_path / "x.json").write_text("[[1.0, 2.0]]")
    with base.copied(tmp_path) as copied:
        yield copied


@pytest.mark.e2e
@pytest.mark.parametrize("attack", ATTACKS, ids=str)
def test_the_command_is_refused_for_this_reason_and_nothing_changes(scene: Scene, attack: Attack) -> None:
    assert {path.name for path in scene.client.store.iterdir()} >= HELD
    message, hint = attack.do(scene)

    for command in attack.commands:
        with unchanged(scene.client.home, scene.folder):
            answer = scene.client.spm(*command.format(folder=scene.folder).split())

        now = answer.document["error"]["context"].get("now")
        said = f"REFUSED [{attack.reason}] beta 1.0.0\n" if command == "verify" and attack.is_of_beta else ""
        answer.refused(attack.exit, attack.reason, message.replace("{now}", str(now)), hint, said=said)
