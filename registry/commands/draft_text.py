"""A draft in words: what its signers vouch for, and a table of who has signed. Prints nothing."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from registry.services.root_changes import changes, shown
from registry.services.root_draft import Adopted, Draft, Need, expiries, terms_of, versions
from registry.services.root_terms import SigningKey

_SIGNER_WIDTH = 40
Namer = Callable[[SigningKey], str]


def to_be_signed(draft: Draft, before: Adopted | None) -> Iterator[str]:
    """Return all that a signature on a draft stands for, as lines."""
    terms, (root, targets, serial) = terms_of(draft, before), versions(draft, before)
    root_ends, targets_ends = (f"{ends:%Y-%m-%d}" for ends in expiries(draft, before))
    told = changes(None if before is None else terms_of(before, before), terms)
    root_was, targets_was = ("", "")
    if before is not None:
        root_was, targets_was = (f" (was until {ends:%Y-%m-%d})" for ends in expiries(before, before))
    keys = ", ".join(key.name or key.keyid[:16] for key in terms.root_keys)
    is_new = draft.root is not None
    yield f"  root {root} " + (f"until {root_ends}{root_was}" if is_new else f"stays, until {root_ends}")
    yield f"    root keys, {terms.threshold} of {len(terms.root_keys)} must sign: {keys}"
    yield from (f"    {line}" for line in told if _is_of_root(line))
    yield f"  targets {targets} until {targets_ends}{targets_was}"
    of_keyring = [line for line in told if not _is_of_root(line)]
    is_same = before is not None and before.keyring == draft.keyring
    yield f"  keyring serial {serial}" + (" (unchanged)" if is_same else "")
    yield from (f"    {line}" for line in of_keyring)


def status(needs: Sequence[Need]) -> Iterator[str]:
    """Return who has signed what, as a table of at most 100 columns, and who is still to sign."""
    keys = _every_key(needs)
    names = namer(needs)
    rows = [("SIGNER", "KEYID", *(_column(need, needs).upper() for need in needs))]
    rows += [(_cut(key.name or "-"), key.keyid[:16], *(_state(key, need) for need in needs)) for key in keys]
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield from _missing(needs, names)


def namer(needs: Sequence[Need]) -> Namer:
    """Return what names a signer: by name, with the key id where another has the same name."""
    held = Counter(key.name for key in _every_key(needs))

    def name(key: SigningKey) -> str:
        if not key.name:
            return key.keyid[:16]
        return key.name if held[key.name] == 1 else f"{key.name} {key.keyid[:16]}"

    return name


def listed(keys: Sequence[SigningKey]) -> str:
    """Return keys with their whole ids."""
    return ", ".join(shown(key) for key in keys)


def _is_of_root(line: str) -> bool:
    return line.startswith(("registry: ", "root key ", "root threshold", "online key", "bins: "))


def _every_key(needs: Sequence[Need]) -> tuple[SigningKey, ...]:
    keys = {key.keyid: key for need in needs for key in (*need.signed, *need.unsigned)}
    order = {need_key.keyid: None for need in needs for need_key in sorted((*need.signed, *need.unsigned), key=_name)}
    return tuple(keys[keyid] for keyid in order)


def _name(key: SigningKey) -> tuple[str, str]:
    return key.name, key.keyid


def _column(need: Need, needs: Sequence[Need]) -> str:
    if need.document != "root":
        return f"{need.document} {need.version}"
    if sum(each.document == "root" for each in needs) == 1:
        return f"root {need.version}"
    return "new root keys" if need.root_version == need.version else "old root keys"


def _state(key: SigningKey, need: Need) -> str:
    if key in need.signed:
        return "signed"
    return "missing" if key in need.unsigned else "-"


def _missing(needs: Sequence[Need], name: Namer) -> Iterator[str]:
    """Say once what several documents lack alike."""
    lacking: dict[tuple[int, tuple[str, ...]], Need] = {}
    for need in needs:
        if need.missing:
            lacking.setdefault((need.missing, tuple(sorted(name(key) for key in need.unsigned))), need)
    for (missing, names), need in lacking.items():
        whose = "" if len(lacking) == 1 else f" of the {_column(need, needs)}"
        yield f"{missing} more{whose} {'is' if missing == 1 else 'are'} needed: {_choice(missing, names)}"


def _choice(missing: int, names: tuple[str, ...]) -> str:
    if missing >= len(names):
        return _joined(names, "and")
    return _joined(names, "or") if missing == 1 else f"{missing} of {_joined(names, 'and')}"


def _joined(names: tuple[str, ...], word: str) -> str:
    return f" {word} ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def _cut(name: str) -> str:
    return name if len(name) <= _SIGNER_WIDTH else f"{name[: _SIGNER_WIDTH - 1]}…"
