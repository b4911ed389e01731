"""loader.conf as lines: takes one key's table out and leaves all else as it was written. Does not parse TOML.

The caller holds what comes out against what was meant: text that is laid out in another way is refused there.
"""

import re

_TABLE = re.compile(r"\s*\[{1,2}\s*([A-Za-z_.\s]+?)\s*\]{1,2}\s*(?:#.*)?")
_KEY_TABLES = ("core.keys", "ext")


def without_key(text: str, keyid: str) -> str:
    """Return the text without the table of a key, its sub-tables, and the comment right above it."""
    kept: list[str] = []
    for table in _tables(text.splitlines(keepends=True)):
        if not (_name(table) in _KEY_TABLES and any(keyid in line for line in table)):
            kept += table
    return "".join(kept).rstrip() + "\n"


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
