"""The source files of the five rooms, read for tests of the house. Imports none of them."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("manifests", "keys", "runtime", "registry", "spm_client")


def modules() -> Iterator[tuple[str, str]]:
    """Yield path and text of each module; the examples are plugins, not part of the house."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith("manifests/examples/"):
                yield name, path.read_text("utf-8")


def trees() -> Iterator[tuple[str, ast.Module]]:
    for name, text in modules():
        yield name, ast.parse(text)


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
