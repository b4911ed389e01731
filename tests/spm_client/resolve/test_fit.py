"""Facts of a release against facts of a target, and which variant is taken."""

from dataclasses import replace
from typing import Any

import pytest

from manifests.fit import Misfit, Unknown
from manifests.index import ReleaseEntry, VariantEntry
from manifests.target import Target, TorchFacts
from spm_client.resolve.fit import Fits, judge, tag_of
from tests.spm_client.resolve.universe import HOST, gpu_host, release, variant

NO_TORCH = replace(HOST, torch=None)


def misfit(entry: ReleaseEntry, target: Target = HOST) -> tuple[str, str]:
    verdict = judge(entry, target)
    assert isinstance(verdict, Misfit)
    return verdict.reason, verdict.text


def taken(target: Target, *variants: VariantEntry) -> str:
    verdict = judge(release("1.0.0", *variants), target)
    assert isinstance(verdict, Fits)
    return tag_of(verdict.variant)


def passed_over(target: Target, *variants: VariantEntry) -> dict[str, str]:
    verdict = judge(release("1.0.0", *variants), target)
    assert isinstance(verdict, Fits)
    return {tag_of(entry): misfit.text for entry, misfit in verdict.passed_over}


def test_release_without_wishes_fits_any_target() -> None:
    assert isinstance(judge(release("1.0.0"), NO_TORCH), Fits)


@pytest.mark.parametrize(
    ("members", "target", "expected"),
    [
        (
            {"contract": ">=2.1,<3"},
            HOST,
            ("contract", "needs Seedance contract `>=2.1,<3`, and the target has 2.0.5"),
        ),
        ({"torch": ">=2.14"}, HOST, ("torch", "needs torch `>=2.14`, and the target has 2.13.0+cpu")),
        ({"torch": ">=2.6"}, NO_TORCH, ("torch", "needs torch `>=2.6`, and the target has no torch")),
        ({"python": ">=3.12"}, HOST, ("python", "needs Python `>=3.12`, and the target has 3.11.2")),
    ],
)
def test_what_a_release_asks_of_every_target_is_a_fact(
    members: dict[str, Any], target: Target, expected: tuple[str, str]
) -> None:
    assert misfit(release("1.0.0", **members), target) == expected


@pytest.mark.parametrize(
    ("found", "wanted", "fits"),
    [
        ("2.13.0+cpu", "==2.13.0", True),
        ("2.13.0+cpu", "<=2.13.0", True),
        ("2.7.0a0+79aa17489c", ">=2.6", True),
        ("2.7.0a0+79aa17489c", ">=2.7", False),
        ("2.14.0.dev20260901+cu126", ">=2.13", True),
    ],
)
def test_a_hosts_own_version_counts_by_its_order_and_without_its_build(found: str, wanted: str, fits: bool) -> None:
    verdict = judge(release("1.0.0", torch=wanted), replace(HOST, torch=TorchFacts(version=found)))

    assert isinstance(verdict, Fits) == fits


def test_version_that_cannot_be_compared_is_unknown() -> None:
    verdict = judge(release("1.0.0", torch=">=2.6"), replace(HOST, torch=TorchFacts(version="2.6-custom-x")))

    expected = "needs torch `>=2.6`, and the target's torch '2.6-custom-x' cannot be compared"
    assert verdict == Unknown("torch", expected)


def test_misfit_outweighs_an_unknown() -> None:
    odd = replace(HOST, torch=TorchFacts(version="2.6-custom-x"))

    assert misfit(release("1.0.0", torch=">=2.6", python=">=3.12"), odd)[0] == "python"


@pytest.mark.parametrize(
    ("members", "target", "expected"),
    [
        (
            {"os": "darwin", "cpu": "arm64"},
            HOST,
            ("no-variant", "has no variant for it: `darwin-arm64` is built for darwin, and the target runs linux"),
        ),
        (
            {"os": "linux", "cpu": "aarch64"},
            HOST,
            (
                "no-variant",
                "has no variant for it: `linux-aarch64` is built for aarch64, and the target's cpu is x86_64",
            ),
        ),
        (
            {"accelerator": "npu"},
            HOST,
            ("no-variant", "has no variant for it: `npu` is built for npu, and the target has no npu device"),
        ),
        (
            {"torch": "~2.12"},
            HOST,
            ("torch", "has no variant for it: `torch2.12` needs torch `~2.12`, and the target has 2.13.0+cpu"),
        ),
        (
            {"cuda": "^12.4"},
            HOST,
            (
                "torch",
                "has no variant for it: `cudac12.4` needs CUDA `^12.4`, and the target's torch 2.13.0+cpu has no CUDA",
            ),
        ),
        (
            {"cuda": "^12.4"},
            NO_TORCH,
            ("torch", "has no variant for it: `cudac12.4` needs CUDA `^12.4`, and the target has no torch"),
        ),
        (
            {"accelerator": "cuda"},
            gpu_host("sm_86", torch=TorchFacts(version="2.13.0+cpu")),
            (
                "torch",
                "has no variant for it: `cuda` is built for cuda, and the target's torch 2.13.0+cpu has no CUDA",
            ),
        ),
        (
            {"accelerator": "cuda", "sm": "sm_90"},
            gpu_host("sm_86", "sm_86"),
            ("arch", "has no variant for it: `cuda-sm_90` is built for sm_90, and the target has sm_86"),
        ),
        (
            {"sm": "sm_90"},
            HOST,
            ("arch", "has no variant for it: `sm_90` is built for sm_90, and the target has no cuda device"),
        ),
    ],
)
def test_variant_that_does_not_fit_says_its_fact(
    members: dict[str, Any], target: Target, expected: tuple[str, str]
) -> None:
    assert misfit(release("1.0.0", variant(**members)), target) == expected


def test_variants_that_fail_for_different_reasons_are_no_variant() -> None:
    entry = release("1.0.0", variant(torch="~2.12"), variant(python=">=3.12"))

    expected = (
        "has no variant for it: `torch2.12` needs torch `~2.12`, and the target has 2.13.0+cpu; "
        "`pythonge3.12` needs Python `>=3.12`, and the target has 3.11.2"
    )
    assert misfit(entry) == ("no-variant", expected)


def test_builds_for_other_machines_are_not_told_where_one_for_this_kind_fails() -> None:
    entry = release("1.0.0", variant(os="darwin"), variant(os="linux", cpu="x86_64", torch="~2.12"))

    expected = "has no variant for it: `linux-x86_64-torch2.12` needs torch `~2.12`, and the target has 2.13.0+cpu"
    assert misfit(entry) == ("torch", expected)


@pytest.mark.parametrize(
    ("built", "device", "runs"),
    [
        ("sm_86", "sm_86", True),
        ("sm_86", "sm_89", True),
        ("sm_89", "sm_86", False),
        ("sm_80", "sm_90", False),
        ("sm_90a", "sm_90", True),
        ("sm_100a", "sm_103", False),
        ("sm_100f", "sm_103", True),
        ("sm_120", "sm_121", True),
        ("sm_100", "sm_120", False),
    ],
)
def test_device_code_runs_on_its_major_from_its_minor_up(built: str, device: str, runs: bool) -> None:
    verdict = judge(release("1.0.0", variant(accelerator="cuda", sm=built)), gpu_host(device))

    assert isinstance(verdict, Fits) == runs


def test_one_device_that_can_run_it_is_enough() -> None:
    assert taken(gpu_host("sm_75", "sm_90"), variant(sm="sm_80 sm_90")) == "sm_80-sm_90"


def test_unknown_sm_is_undecided_unless_another_device_decides() -> None:
    entry = release("1.0.0", variant(accelerator="cuda", sm="sm_86"))

    expected = Unknown("sm", "is built for sm_86, and the target does not say the sm of cuda:1")
    assert judge(entry, gpu_host("sm_75", None)) == expected
    assert isinstance(judge(entry, gpu_host("sm_86", None)), Fits)


def test_unknown_of_a_more_specific_variant_is_not_settled_by_a_lesser_one() -> None:
    entry = release("1.0.0", variant(), variant(accelerator="cuda", sm="sm_86"))

    assert isinstance(judge(entry, gpu_host(None)), Unknown)


def test_most_specific_variant_is_taken() -> None:
    generic, cuda, exact = variant(), variant(accelerator="cuda"), variant(accelerator="cuda", sm="sm_86")

    assert taken(gpu_host("sm_86"), generic, cuda, exact) == "cuda-sm_86"
    assert passed_over(gpu_host("sm_86"), generic, cuda, exact) == {}


def test_nearest_device_code_is_taken() -> None:
    variants = [variant(accelerator="cuda", sm=sm) for sm in ("sm_80", "sm_86", "sm_90")]

    assert taken(gpu_host("sm_89"), *variants) == "cuda-sm_86"
    assert passed_over(gpu_host("sm_89"), *variants) == {}


def test_build_for_another_machine_is_not_passed_over() -> None:
    variants = (variant(), variant(accelerator="cuda", sm="sm_86"), variant(os="darwin", cpu="arm64"))

    assert taken(HOST, *variants) == "any"
    assert passed_over(HOST, *variants) == {}


def test_better_build_for_this_kind_of_machine_that_cannot_be_used_is_passed_over() -> None:
    variants = (variant(accelerator="cpu"), variant(accelerator="cuda", sm="sm_90"), variant(torch="~2.12"))

    assert taken(gpu_host("sm_86"), *variants) == "cpu"
    assert passed_over(gpu_host("sm_86"), *variants) == {
        "cuda-sm_90": "is built for sm_90, and the target has sm_86",
    }


def test_sibling_for_another_torch_is_not_passed_over() -> None:
    variants = [variant(os="linux", cpu="x86_64", torch=wanted) for wanted in ("~2.13", "~2.12")]

    assert taken(HOST, *variants) == "linux-x86_64-torch2.13"
    assert passed_over(HOST, *variants) == {}


def test_choice_does_not_depend_on_the_order_of_variants() -> None:
    variants = (variant(os="linux"), variant(cpu="x86_64"), variant(os="linux", cpu="x86_64"), variant())

    assert {taken(HOST, *variants), taken(HOST, *reversed(variants))} == {"linux-x86_64"}
