"""Compiles the operator against the torch of this interpreter at pack time. Fetches nothing.

Usage: python build.py STAGING   (compiler: $CXX, else g++)
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from torch.utils.cpp_extension import include_paths, library_paths

HERE = Path(__file__).resolve().parent
LIBRARY = "libfused_gelu.so"
OLDEST_TORCH = (2, 10)
COMPILE_SECONDS = 240


def build(staging: Path) -> None:
    """Compile the operator into staging."""
    _check_torch()
    command = compile_command(_find_compiler(), staging / LIBRARY)
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False)
    if done.returncode != 0:
        raise SystemExit(f"error: fused-gelu does not compile:\n{done.stderr.strip()}")


def compile_command(compiler: str, library: Path) -> list[str]:
    """Return the one command that compiles and links; no path of this machine ends up in the library."""
    prefixes = {HERE: "fused-gelu", Path(torch.__file__).parent: "torch"}
    command = [
        compiler,
        "-std=c++20",
        "-O3",
        "-fno-trapping-math",
        "-fno-math-errno",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-DNDEBUG",
        "-Wall",
        "-Wextra",
    ]
    command += [f"-ffile-prefix-map={path}={name}" for path, name in prefixes.items()]
    command += [argument for path in include_paths() for argument in ("-isystem", path)]
    command += ["source/fused_gelu.cpp", "-o", str(library)]
    command += [f"-L{path}" for path in library_paths()]
    return [*command, "-Wl,--build-id=none", "-Wl,--as-needed", "-Wl,--strip-all", "-ltorch_cpu"]


def _check_torch() -> None:
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    if (major, minor) < OLDEST_TORCH:
        raise SystemExit(f"error: fused-gelu needs torch 2.10 or newer to be built, this is {torch.__version__}")


def _find_compiler() -> str:
    wish = os.environ.get("CXX") or "g++"
    compiler = shutil.which(wish)
    if compiler is None:
        raise SystemExit(f"error: fused-gelu needs a C++ compiler, and `{wish}` is not in PATH: install g++ or set CXX")
    return compiler


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python build.py STAGING")
    build(Path(sys.argv[1]).resolve())
