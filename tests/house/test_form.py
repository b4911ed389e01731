"""The form of the source: modules and functions stay small, say what they are, and swallow no error unseen."""

import ast
from collections.abc import Iterator

from tests.house.rooms import functions, modules, trees

MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 40
BANNED_NAMES = ("utils.py", "util.py", "helpers.py", "helper.py", "common.py", "misc.py")

# A handler of any exception that does not raise again, and why none narrower would do.
CATCH_ALL = {
    ("runtime/instance.py", "_serve_first"): "whoever waits for the start is told, whatever it was",
    ("runtime/instance.py", "_answer"): "a call always ends: with its result or with what went wrong",
    ("runtime/worker.py", "_load"): "plugin code may raise anything; the host is told all of it",
    ("runtime/worker.py", "_run"): "plugin code may raise anything; the host is told all of it",
    ("registry/api/fast_reads.py", "__call__"): "the outermost layer: whatever happened is logged and answered",
    ("registry/services/fresh_timestamp.py", "row"): "a timestamp that is still good is served, and the fault logged",
}


def test_rooms_are_found() -> None:
    assert len(list(modules())) > 50


def test_modules_are_small() -> None:
    sizes = {name: text.count("\n") for name, text in modules()}

    assert {name: lines for name, lines in sizes.items() if lines > MAX_MODULE_LINES} == {}


def test_functions_are_small() -> None:
    sizes = {
        f"{name}:{function.lineno} {function.name}": (function.end_lineno or 0) - function.lineno + 1
        for name, tree in trees()
        for function in functions(tree)
    }

    assert {place: lines for place, lines in sizes.items() if lines > MAX_FUNCTION_LINES} == {}


def test_every_module_says_what_it_is() -> None:
    assert [name for name, tree in trees() if not ast.get_docstring(tree)] == []


def test_every_module_is_named_for_what_it_holds() -> None:
    assert [name for name, _ in modules() if name.rpartition("/")[2] in BANNED_NAMES] == []


def test_no_error_is_swallowed_unseen() -> None:
    found = {(name, function) for name, tree in trees() for function in catch_all(tree)}

    assert found - CATCH_ALL.keys() == set()


def test_list_of_handlers_of_any_error_is_not_longer_than_the_truth() -> None:
    found = {(name, function) for name, tree in trees() for function in catch_all(tree)}

    assert CATCH_ALL.keys() - found == set()


def test_no_refusal_is_silenced_by_contextlib() -> None:
    silenced = [
        f"{name}:{node.lineno}"
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] == "suppress"
        and {ast.unparse(argument) for argument in node.args} & {"Exception", "BaseException", "SpmError"}
    ]

    assert silenced == []


def catch_all(tree: ast.Module) -> Iterator[str]:
    """Yield the innermost function of each handler of any exception that does not end by raising again."""
    for function in functions(tree):
        inner = {id(node) for other in functions_within(function) for node in ast.walk(other)}
        for node in ast.walk(function):
            if isinstance(node, ast.ExceptHandler) and id(node) not in inner and is_catch_all(node):
                yield function.name
    for statement in tree.body:
        if isinstance(statement, ast.Try) and any(map(is_catch_all, statement.handlers)):
            yield "(module)"


def functions_within(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(function):
        if node is not function and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def is_catch_all(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    names = {"" if kind is None else ast.unparse(kind) for kind in kinds}
    return bool(names & {"", "Exception", "BaseException"}) and not isinstance(handler.body[-1], ast.Raise)
