"""loader.conf as lines: takes one key's table out, or sets the root; all else stays as written. Does not parse TOML.

The caller holds what comes out against what was meant: text that is laid out in another way is refused there.
"""

import re

_TABLE = re.compile(r"\s*\[{1,2}\s*([A-Za-z_.\s]+?)\s*\]{1,2}\s*(?:#.*)?")
_KEY_TABLES = ("core.keys", "ext")
_ROOT_VALUE = re.compile(r"\s*(version|sha256)\s*=")


def without_key(text: str, keyid: str) -> str:
    """Return the text without the table of a key, its sub-tables, and the comment right above it."""
    kept: list[str] = []
    for table in _tables(text.splitlines(keepends=True)):
        if not (_name(table) in _KEY_TABLES and any(keyid in line for line in table)):
            kept += table
    return "".join(kept).rstrip() + "\n"


def with_root(text: str, version: int, sha256: str) -> str:
    """Return the text with this root pinned: in its table if there is one, else in a new one below the registry's."""
    values = {"version": f"version = {version}\n", "sha256": f'sha256 = "{sha256}"\n'}
    tables = _tables(text.splitlines(keepends=True))
    names = [_name(table) for table in tables]
    if "root" in names:
        place = names.index("root")
        tables[place] = [_with_value(line, values) for line in tables[place]]
    else:
        place = names.index("registry") + 1 if "registry" in names else len(tables)
        tables[place - 1] = _ended(tables[place - 1])
        tables.insert(place, ["[root]\n", *values.values(), *(["\n"] if place < len(tables) else [])])
    return "".join(line for table in tables for line in table)


def _with_value(line: str, values: dict[str, str]) -> str:
    found = _ROOT_VALUE.match(line)
    return values[found[1]] if found else line


def _ended(table: list[str]) -> list[str]:
    """Return a table that an empty line follows."""
    whole = [*table[:-1], f"{table[-1].rstrip()}\n"]
    return whole if whole[-1] == "\n" else [*whole, "\n"]


def _tables(lines: list[str]) -> list[list[str]]:
    """Split the lines before each table, so that a table has its sub-tables and the comment right above it."""
    tables: list[list[str]] = [[]]
    is_in_text = False
    for line in lines:
        header = None if is_in_text else _TABLE.fullmatch(line.rstrip("\r\n"))
        if header is not None and not _is_sub_table(header[1], tables[-1]):
            tables.append(_take_comment(tables[-1]))
        tables[-1].append(line)
        is_in_text ^= line.count('"""') % 2 == 1
    return tables


def _take_comment(table: list[str]) -> list[str]:
    first = len(table)
    while first and table[first - 1].lstrip().startswith("#"):
        first -= 1
    comment = table[first:]
    del table[first:]
    return comment


def _is_sub_table(name: str, table: list[str]) -> bool:
    return name.startswith(f"{_name(table)}.") and _name(table) in _KEY_TABLES


def _name(table: list[str]) -> str:
    headers = (_TABLE.fullmatch(line.rstrip("\r\n")) for line in table)
    return next((header[1] for header in headers if header is not None), "")
