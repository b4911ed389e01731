"""`spm trust --registry`, `spm doctor` and `spm verify` where a store knows several registries."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keys.trust_state import read_trust_state
from tests.e2e.snapshots import snapshot
from tests.fakes.two_registries import PX, TwoRegistries, two_registries
from tests.spm_client.cli.conftest import Spm, Told


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoRegistries]:
    with two_registries(tmp_path / "store") as made:
        yield made


@pytest.fixture
def call(spm: Spm, two: TwoRegistries) -> Callable[..., Told]:
    return lambda *words: spm("--root", two.root, *words)


def doctors(told: Told) -> dict[str, list[tuple[str, str]]]:
    """Return status and words of each thing that the doctor looked at."""
    found: dict[str, list[tuple[str, str]]] = {}
    for point in told.document["points"]:
        found.setdefault(point["about"], []).append((point["status"], point["told"]))
    return found


@pytest.mark.parametrize("action", ["init", "update"])
def test_trust_of_another_registry_is_learnt_in_its_own_place(
    two: TwoRegistries, call: Callable[..., Told], action: str
) -> None:
    learnt = call("trust", action, "--registry", PX, "--json")

    assert (learnt.code, learnt.document["registry"], learnt.document["is_begun"]) == (0, PX, True)
    held = read_trust_state(two.px_layout.root)
    assert held is not None
    assert (held.registry, read_trust_state(two.root)) == (PX, None)
    assert two.asked()[0] == []


def test_trust_of_another_registry_is_shown(two: TwoRegistries, call: Callable[..., Told]) -> None:
    call("trust", "init", "--registry", PX)

    shown = call("trust", "show", "--registry", PX)

    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith(f"registry  px.example at {two.px_served.url}\n")


def test_the_own_registry_may_be_named_too(call: Callable[..., Told]) -> None:
    assert call("trust", "init", "--registry", "team.example", "--json").document["registry"] == "team.example"


@pytest.mark.parametrize(
    "words",
    [
        ("info", "../x"),
        ("info", "../x/mel"),
        ("trust", "init", "--registry", "../x"),
        ("trust", "show", "--registry", ".."),
    ],
)
def test_what_is_no_registry_s_id_never_becomes_a_path(
    two: TwoRegistries, call: Callable[..., Told], words: tuple[str, ...]
) -> None:
    before = snapshot(two.root)

    told = call(*words)

    text = ".." if words[0] == "info" and words[1] == "../x" else words[-1].removesuffix("/mel")
    assert (told.code, told.out, told.err) == (
        2,
        "",
        f"error[usage]: '{text}' is not a registry's id: an id is of a-z, 0-9, `.` and `-`, begins and ends with one "
        "of a-z and 0-9, and has 64 characters at most\n"
        "  hint: `spm doctor` shows the registries that this store knows\n",
    )
    assert (snapshot(two.root), two.asked()) == (before, ([], []))


def test_what_is_refused_says_whose_it_is_and_names_it_in_the_remedy(
    two: TwoRegistries, call: Callable[..., Told]
) -> None:
    refused = call("trust", "show", "--registry", PX)

    assert (refused.code, refused.err) == (
        3,
        f"error[unknown:revocations]: `{two.px_layout.trust}` is empty: this store remembers nothing of the registry "
        "`px.example`\n"
        "  hint: `spm trust init --registry px.example` begins from the root that registries/px.example/loader.conf "
        "pins\n",
    )


def test_a_registry_that_the_store_does_not_know_is_refused(two: TwoRegistries, call: Callable[..., Told]) -> None:
    before = snapshot(two.root)

    refused = call("trust", "update", "--registry", "lab.example")

    assert (refused.code, refused.err) == (
        26,
        "error[conf-missing]: this store knows no registry `lab.example`: it knows `team.example`, `px.example`\n"
        "  hint: get its loader.conf from whoever runs it, and put it at `registries/ID/loader.conf` in the store\n",
    )
    assert snapshot(two.root) == before


def test_trust_of_another_registry_is_carried_in_a_file(
    two: TwoRegistries, call: Callable[..., Told], tmp_path: Path
) -> None:
    call("trust", "init", "--registry", PX)
    exported = call("trust", "export", tmp_path / "px.trust", "--registry", PX)
    shutil.rmtree(two.px_layout.trust)

    taken = call("trust", "import", tmp_path / "px.trust", "--registry", PX, "--json")

    assert (exported.code, taken.code, taken.document["registry"]) == (0, 0, PX)
    as_own = call("trust", "import", tmp_path / "px.trust", "--json")
    assert as_own.code != 0
    assert read_trust_state(two.root) is None


def test_a_doctor_tells_of_each_registry(two: TwoRegistries, call: Callable[..., Told]) -> None:
    call("trust", "init", "--registry", PX)

    told = call("doctor", "--json")
    found = doctors(told)

    assert found["trust"] == [("note", "nothing learnt yet: the first install or `spm trust init` fetches it")]
    assert found[PX] == [("named", f"at {two.px_served.url}, asked alone for `px-*`")]
    assert found[f"{PX}: root"][0][0] == "good"
    assert found[f"{PX}: keyring"] == [("good", "serial 1; core plugins need 1 signature")]
    assert "team.example: root" not in found


def test_a_doctor_tells_how_to_learn_of_another_registry(call: Callable[..., Told]) -> None:
    assert doctors(call("doctor", "--json"))[f"{PX}: trust"] == [
        (
            "note",
            "nothing learnt yet: the first install or `spm trust init --registry px.example` fetches it",
        )
    ]


def test_a_doctor_names_what_is_wrong_with_another_registry(two: TwoRegistries, call: Callable[..., Told]) -> None:
    (two.px_layout.root / "loader.conf").chmod(0o666)

    told = call("doctor", "--json")

    assert told.code == 26
    path = two.px_layout.root / "loader.conf"
    assert doctors(told)[PX] == [
        (
            "problem",
            f"{path} has the mode 0666: its group or everyone may write it, so it cannot say whom to trust",
        )
    ]


def test_a_doctor_names_what_is_no_registrys_folder(two: TwoRegistries, call: Callable[..., Told]) -> None:
    (two.root / "registries" / "Px").mkdir()

    told = call("doctor", "--json")

    assert told.code == 26
    assert doctors(told)["registries"] == [
        (
            "problem",
            f"{two.root}/registries/Px is no folder of a registry: such a folder is named for the registry's id, and "
            "holds its loader.conf",
        )
    ]


def test_a_doctor_and_an_install_refuse_a_link_for_the_registries(
    two: TwoRegistries, call: Callable[..., Told]
) -> None:
    two.own.publish("px-scale")
    shutil.move(two.root / "registries", two.root.parent / "elsewhere")
    (two.root / "registries").symlink_to("nowhere")
    before = snapshot(two.root)

    told, refused = call("doctor", "--json"), call("install", "px-scale")

    message = f"{two.root}/registries is a symbolic link, the store has none"
    assert (told.code, doctors(told)["registries"]) == (25, [("problem", message)])
    assert (refused.code, refused.err) == (
        25,
        f"error[link]: {message}\n  hint: put the folder itself there; if there are no other registries, "
        f"`rm {two.root}/registries`\n",
    )
    assert (snapshot(two.root), two.asked()) == (before, ([], []))


def test_a_doctor_tells_of_another_registry_s_trust_behind_a_link(
    two: TwoRegistries, call: Callable[..., Told]
) -> None:
    two.px_layout.trust.symlink_to("nowhere")

    told = call("doctor", "--json")

    message = f"{two.px_layout.trust} is a symbolic link, the store has none"
    assert (told.code, doctors(told)[f"{PX}: trust"]) == (25, [("problem", message)])


@pytest.mark.usefixtures("installed")
def test_a_doctor_tells_of_a_damaged_generation_beyond_the_current_one(
    two: TwoRegistries, call: Callable[..., Told]
) -> None:
    (two.root / "generations" / "000002.json").mkdir()

    told = call("doctor", "--json")

    path = two.root / "generations" / "000002.json"
    assert told.code == 25
    assert doctors(told)["installed"] == [
        (
            "problem",
            f"`{path}` is the newest generation, but damaged, and cannot be made current: {path} is no plain file; "
            "nothing was changed",
        ),
        ("good", "2 of 2 plugins with signatures that count; `spm verify` reads all files"),
    ]


@pytest.fixture
def installed(two: TwoRegistries, call: Callable[..., Told]) -> None:
    """Install `px-scale` of the other registry, and `base` of the own one, which it requires."""
    two.own.publish("base")
    two.px.publish("px-scale", requires=["base"])
    assert call("install", "px-scale").code == 0


@pytest.mark.usefixtures("installed")
def test_a_revocation_by_one_registry_is_told_of_its_plugins_alone(
    two: TwoRegistries, call: Callable[..., Told]
) -> None:
    two.px.revoke_key()

    of_own = call("trust", "update")
    of_px = call("trust", "update", "--registry", PX)
    listed = call("list", "--json").document["plugins"]
    verified = call("verify")

    assert "px-scale" not in of_own.out
    assert of_px.out.endswith(
        "refused from now on: `px-scale` 1.0.0 (key-revoked): uninstall it (`spm uninstall px-scale`) or install a "
        "later "
        "release\n"
    )
    assert [(one["name"], one["is_revoked"]) for one in listed] == [("base", False), ("px-scale", True)]
    assert verified.out == "verified   base 1.0.0\nREFUSED [key-revoked] px-scale 1.0.0 (from px.example)\n"
    assert verified.code == 22


@pytest.mark.usefixtures("installed")
def test_a_registry_whose_trust_is_lost_spoils_the_verification_of_its_plugins_alone(
    two: TwoRegistries, call: Callable[..., Told]
) -> None:
    shutil.rmtree(two.px_layout.trust)

    verified = call("verify")

    assert verified.out == "verified   base 1.0.0\nREFUSED [unknown:revocations] px-scale 1.0.0 (from px.example)\n"
    assert (verified.code, verified.err) == (
        3,
        f"error[unknown:revocations]: {two.px_layout.trust} is empty, so that nothing says which keys were revoked\n"
        "  hint: `spm trust init --registry px.example` learns it from the registry\n",
    )


@pytest.mark.usefixtures("installed")
def test_a_doctor_tells_what_the_next_install_would_refuse(two: TwoRegistries, call: Callable[..., Told]) -> None:
    two.pin("px-*")
    two.pin_px("other-*")

    told = call("doctor", "--json")

    assert told.code == 10
    assert doctors(told)["names"] == [
        (
            "problem",
            "`px-scale` is installed from the registry `px.example`, and would now come from `team.example`, where "
            "that "
            "name is another plugin",
        )
    ]
    assert doctors(told)["installed"] == [
        ("good", "2 of 2 plugins with signatures that count; `spm verify` reads all files")
    ]
