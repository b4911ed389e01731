"""The text of a spm.toml: written anew, and edited with comments and order kept. Reads and writes no file.

tomlkit, which keeps what it does not change, is loaded only where a text is edited.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, ParamSpec

from manifests.errors import ConfigSyntax, SpmError
from manifests.names import PluginName
from manifests.project import PROJECT_FILE, ProjectRequirement

P = ParamSpec("P")


def uneditable(table: str) -> ConfigSyntax:
    """Return the refusal of a document in a form that an editor of TOML does not keep."""
    return ConfigSyntax(
        f"`{table}` of {PROJECT_FILE} is written in a form that cannot be edited: with dotted keys, or in tables that "
        "do not follow one another; nothing was changed",
        hint=f"write it as one table `[{table}]` with a line for each member, or edit it by hand and run `spm lock`",
        table=table,
    )


def _editing(table: str) -> Callable[[Callable[P, str]], Callable[P, str]]:
    def decorate(edit: Callable[P, str]) -> Callable[P, str]:
        @wraps(edit)
        def edited(*arguments: P.args, **options: P.kwargs) -> str:
            try:
                return edit(*arguments, **options)
            except SpmError:
                raise
            except Exception as error:  # of a document whose tables are out of order, tomlkit raises whatever it meets
                raise uneditable(table) from error

        return edited

    return decorate


def new_text(name: str, *, registry: str | None, target: str, target_file: str) -> str:
    """Return a spm.toml without requirements."""
    of_registry = f'registry = "{registry}"\n' if registry else ""
    return (
        f'[project]\nname = "{name}"\n{of_registry}\n'
        '# `spm add NAME` writes here: NAME = "RANGE".\n[requirements]\n\n'
        "# The hosts that spm.lock is for; `spm target probe` describes one.\n"
        f'[targets]\n{_key(target)} = "{target_file}"\n'
    )


@_editing("requirements")
def with_requirement(text: str, wanted: ProjectRequirement) -> str:
    """Return the text with the requirement in place of the one of that name, or at the end of the others.

    Raises: ConfigSyntax for a form that cannot be edited, here and in all that edit.
    """
    import tomlkit

    document = _parsed(text)
    table = _table(document, "requirements")
    members, present = wanted.to_dict(), table.get(wanted.name)
    if isinstance(present, tomlkit.items.Table):
        for member in [member for member in present if member not in members]:
            del present[member]
        for member in [member for member in members if present.get(member) != members[member]]:
            present[member] = _value(members[member])
    elif present != members and {"range": present} != members:
        _put(table, wanted.name, _value(members) if len(members) > 1 else members["range"])
    return _text(document)


@_editing("requirements")
def without_requirement(text: str, name: PluginName) -> str:
    """Return the text without the requirement of that name, which must be there."""
    document = _parsed(text)
    del document["requirements"][name]
    return _text(document)


@_editing("resolution")
def with_names(text: str, member: str, names: Iterable[PluginName]) -> str:
    """Return the text with these names added to a list of `[resolution]`: `pre` or `accept-fallback`."""
    if not (wanted := sorted(names)):
        return text
    document = _parsed(text)
    table = _table(document, "resolution")
    before = [str(name) for name in table.get(member, [])]
    if before:
        table[member].extend(name for name in wanted if name not in before)
    else:
        _put(table, member, wanted)
    return _text(document)


def _key(word: str) -> str:
    return f'"{word}"' if "." in word else word


def _parsed(text: str) -> Any:
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:
        raise ConfigSyntax(f"{PROJECT_FILE} cannot be edited: {error}", hint="write the line by hand") from error


def _text(document: Any) -> str:
    import tomlkit

    return tomlkit.dumps(document)


def _table(document: Any, name: str) -> Any:
    import tomlkit

    if name not in document:
        document[name] = tomlkit.table()
    return document[name]


def _put(table: Any, key: str, value: Any) -> None:
    """Set a member; a new one goes right below the last member, above blank lines and comments of what follows."""
    import tomlkit

    tail: list[Any] = []
    if key not in table and isinstance(table, tomlkit.items.Table):
        body = table.value.body
        first = next((place for place in reversed(range(len(body))) if body[place][0] is not None), -1) + 1
        tail = body[first:]
        del body[first:]
    table[key] = value
    for found, item in tail:
        table.value.append(found, item)


def _value(value: Any) -> Any:
    import tomlkit

    if isinstance(value, dict):
        table = tomlkit.inline_table()
        for member, inner in value.items():
            table[member] = _value(inner)
        return table
    return value
