"""Times the built operator against torch's two calls. Checks no result.

Usage: python benchmark.py STAGING   (a folder that build.py filled)
"""

import functools
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

SHAPES = ((64, 256), (1024, 1024), (4096, 4096))
REPEATS = 25


def best_milliseconds(call: Callable[[], Tensor]) -> float:
    """Return the best of many runs, after one to warm up."""
    call()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def main(tree: Path) -> None:
    """Print one row a case, in the form of the README's table."""
    torch.ops.load_library(tree / "libfused_gelu.so")  # type: ignore[no-untyped-call]
    operator = torch.ops.seedance_fused_gelu.bias_gelu
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}")
    for form, dtype, shape in itertools.product(("none", "tanh"), (torch.float32, torch.float64), SHAPES):
        x, bias = torch.randn(shape, dtype=dtype), torch.randn(shape[1], dtype=dtype)
        fused = best_milliseconds(functools.partial(operator, x, bias, form == "tanh"))
        plain = best_milliseconds(functools.partial(two_calls, x, bias, form))
        name = str(dtype).removeprefix("torch.")
        print(f"| {form} | {name} | {shape[0]} x {shape[1]} | {plain:.3f} | {fused:.3f} | {plain / fused:.2f} |")


def two_calls(x: Tensor, bias: Tensor, form: str) -> Tensor:
    """Add, then apply torch's GELU."""
    return functional.gelu(x + bias, approximate=form)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
