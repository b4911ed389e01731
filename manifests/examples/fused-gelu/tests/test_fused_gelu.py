"""The compiled operator against torch's own result, and the build that makes it."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from tests.examples.plugin_trees import PluginContext, build, imported, run_build

SOURCE = Path(__file__).resolve().parents[1]
FORMS = ["none", "tanh"]
FLOAT32_SPACING_BELOW_8 = 2**-21
TOLERANCE = {torch.float32: 2e-6, torch.float64: 4e-15}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SOURCE, tmp_path_factory.mktemp("fused-gelu"))


@pytest.fixture(scope="module")
def fused_gelu(tree: Path) -> Iterator[ModuleType]:
    with imported("fused_gelu", tree) as module:
        module.load_operator(tree)
        yield module


def values(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return 3 * torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(3))


def reference(x: Tensor, bias: Tensor, form: str) -> Tensor:
    return functional.gelu(x + bias, approximate=form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1,), (7,), (3, 5), (64, 256), (2, 3, 129), (1000, 33), (0, 8)])
def test_result_is_torchs_gelu_of_the_sum(
    fused_gelu: ModuleType, shape: tuple[int, ...], dtype: torch.dtype, form: str
) -> None:
    x, bias = values(*shape, dtype=dtype), values(shape[-1], dtype=dtype)

    y = fused_gelu.bias_gelu(x, bias, approximate=form)

    torch.testing.assert_close(y, reference(x, bias, form), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("form", FORMS)
def test_inputs_that_are_not_contiguous_give_the_same_result(fused_gelu: ModuleType, form: str) -> None:
    x, bias = values(40, 12).T, values(80)[::2]

    y = fused_gelu.bias_gelu(x, bias, approximate=form)

    assert not x.is_contiguous()
    torch.testing.assert_close(y, reference(x, bias, form), rtol=2e-6, atol=2e-6)
    assert torch.equal(y, fused_gelu.bias_gelu(x.contiguous(), bias.contiguous(), approximate=form))


def test_inputs_are_left_as_they_were(fused_gelu: ModuleType) -> None:
    x, bias = values(5, 6), values(6)
    before = x.clone(), bias.clone()

    fused_gelu.bias_gelu(x, bias)

    assert torch.equal(x, before[0])
    assert torch.equal(bias, before[1])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_extreme_values_stay_right(fused_gelu: ModuleType, dtype: torch.dtype, form: str) -> None:
    x = torch.tensor([0.0, -0.0, 1e-30, 1e4, -1e4, 40.0, -40.0], dtype=dtype)

    y = fused_gelu.bias_gelu(x[:, None], torch.zeros(1, dtype=dtype), approximate=form)[:, 0]

    torch.testing.assert_close(y, functional.gelu(x, approximate=form))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_infinity_stays_infinite_and_nan_stays_nan(fused_gelu: ModuleType, dtype: torch.dtype, form: str) -> None:
    x = torch.tensor([float("inf"), float("nan")], dtype=dtype).repeat(20)

    y = fused_gelu.bias_gelu(x[:, None], torch.zeros(1, dtype=dtype), approximate=form)[:, 0]

    assert torch.equal(y[::2], x[::2])
    assert y[1::2].isnan().all()


def test_the_exact_form_is_right_to_one_unit_in_the_last_place_of_its_largest_results(fused_gelu: ModuleType) -> None:
    x = torch.linspace(-8, 8, 100_001)
    truth = functional.gelu(x.double())

    ours = fused_gelu.bias_gelu(x[None], torch.zeros(len(x)))[0]

    # torch's own error is no measure: by the machine's instructions it was 3.7e-7 here and 1.2e-6 there.
    assert (ours - truth).abs().max() <= FLOAT32_SPACING_BELOW_8


def test_the_operator_passes_torchs_own_schema_check(fused_gelu: ModuleType) -> None:
    torch.library.opcheck(
        torch.ops.seedance_fused_gelu.bias_gelu.default, (values(4, 3), values(3), False), test_utils="test_schema"
    )


@pytest.mark.parametrize(
    ("x", "bias", "message"),
    [
        (
            values(4, 3),
            values(4),
            "bias must be one value for each of the last dimension of x, got x [4, 3] and bias [4]",
        ),
        (
            values(4, 3),
            values(1, 3),
            "bias must be one value for each of the last dimension of x, got x [4, 3] and bias [1, 3]",
        ),
        (
            torch.tensor(1.0),
            values(1),
            "bias must be one value for each of the last dimension of x, got x [] and bias [1]",
        ),
        (values(4, 3).half(), values(3).half(), "x must be float32 or float64"),
        (values(4, 3), values(3).double(), "bias must have the dtype of x"),
    ],
)
def test_other_shapes_and_dtypes_are_refused_in_words(
    fused_gelu: ModuleType, x: Tensor, bias: Tensor, message: str
) -> None:
    with pytest.raises(RuntimeError) as refusal:
        fused_gelu.bias_gelu(x, bias)

    assert str(refusal.value).splitlines()[0] == f"bias_gelu: {message}"


def test_an_unknown_form_is_refused(fused_gelu: ModuleType) -> None:
    with pytest.raises(ValueError, match=r"^approximate is `none` or `tanh`, got 'quick'$"):
        fused_gelu.bias_gelu(values(1, 1), values(1), approximate="quick")


def test_the_plugins_callable_is_the_exact_form(tree: Path, fused_gelu: ModuleType) -> None:
    plugin = fused_gelu.factory(PluginContext(path=tree, name="fused-gelu", version="1.0.0"))
    x, bias = values(9, 16), values(1, 16)

    torch.testing.assert_close(plugin(x, bias), reference(x, bias, "none"), rtol=2e-6, atol=2e-6)


def test_two_builds_in_two_folders_give_the_same_bytes_without_a_path_of_this_machine(
    tree: Path, tmp_path: Path
) -> None:
    again = build(SOURCE, tmp_path / "elsewhere")

    data = (tree / "libfused_gelu.so").read_bytes()
    assert (again / "libfused_gelu.so").read_bytes() == data
    assert not [path for path in (SOURCE, tree, Path(torch.__file__).parent) if str(path).encode() in data]


def test_a_missing_compiler_is_named(tmp_path: Path) -> None:
    done = run_build(SOURCE, tmp_path, CXX="no-such-compiler")

    assert done.returncode == 1
    assert done.stderr == (
        "error: fused-gelu needs a C++ compiler, and `no-such-compiler` is not in PATH: install g++ or set CXX\n"
    )
