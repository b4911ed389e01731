"""Text of others as a terminal may show it. Decides nothing about what it says."""


def plain(text: str) -> str:
    """Return text without what could move a cursor, hide letters or turn their order; line breaks stay."""
    text = text.replace("\t", " ")
    if text.replace("\n", "").isprintable():
        return text
    return "".join(letter if _is_shown(letter) else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _is_shown(letter: str) -> bool:
    import unicodedata

    return letter == "\n" or letter.isprintable() or unicodedata.category(letter) == "Zs"
