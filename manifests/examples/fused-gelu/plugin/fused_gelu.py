"""Bias and GELU as one C++ operator. Forward only: it has no gradient."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

LIBRARY = "libfused_gelu.so"


class Context(Protocol):
    """What the worker hands over."""

    @property
    def path(self) -> Path: ...


def factory(context: Context) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the plugin's callable: x [rows, width], bias [1, width] -> gelu(x + bias) in the exact form."""
    load_operator(context.path)

    def call(x: Tensor, bias: Tensor) -> Tensor:
        return bias_gelu(x, bias.squeeze(0))

    return call


def load_operator(tree: Path) -> None:
    """Load the compiled operator out of the plugin's own tree; a plugin that imports this module calls it first."""
    torch.ops.load_library(tree / LIBRARY)  # type: ignore[no-untyped-call]


def bias_gelu(x: Tensor, bias: Tensor, *, approximate: str = "none") -> Tensor:
    """Return gelu(x + bias), bias [width] along the last dimension, exact (`none`) or by `tanh`, as torch names them.

    Raises: ValueError on another form; RuntimeError from the operator on other shapes or dtypes.
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is `none` or `tanh`, got {approximate!r}")
    result: Tensor = torch.ops.seedance_fused_gelu.bias_gelu(x, bias, approximate == "tanh")
    return result
