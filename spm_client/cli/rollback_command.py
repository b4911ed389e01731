"""`spm rollback`."""

import argparse

from spm_client.cli.parser import whole
from spm_client.cli.session import Session, timestamp
from spm_client.cli.store_of import existing_store
from spm_client.render import count, fitted, terminal_width
from spm_client.workflows.history import Changed, Step, history
from spm_client.workflows.rollback import RolledBack, rollback

_SHOWN = 6
_LEAST = 20
_NOTE = 30


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Nothing is fetched: what `spm gc` has freed must be installed again."
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--to", metavar="N", type=whole, help="return to generation N (default: the previous one)")
    way.add_argument("--list", action="store_true", help="show the generations and what changed in each")
    parser.add_argument(
        "--not-running", action="store_true", help="I know that no host runs what is replaced (where it cannot be told)"
    )


def run(options: argparse.Namespace, session: Session) -> int:
    if options.list:
        _show_history(history(existing_store(session)), session)
        return 0
    done = rollback(
        existing_store(session),
        session.conf(),
        to=options.to,
        now=session.now(),
        created=timestamp(session.environment),
        is_known_idle=options.not_running,
    )
    _show(done, session)
    return 0


def _show(done: RolledBack, session: Session) -> None:
    session.emit(
        {
            "generation": done.generation.number,
            "repeats": done.repeats,
            "changes": [_as_dict(change) for change in done.changes],
            "laid_out": [entry.name for entry in done.laid_out],
        }
    )
    if session.is_json:
        return
    if not done.changes:
        session.say(f"generation {done.generation.number} has just what generation {done.repeats} had")
    else:
        session.say(f"returned to generation {done.repeats}, as generation {done.generation.number}")
    for change in done.changes:
        session.say(f"  {change}")
    for entry in done.laid_out:
        if entry.name not in {change.name for change in done.changes}:
            session.say(f"  {entry.name} {entry.release} was damaged, and is laid out anew")


def _as_dict(change: Changed) -> dict[str, object]:
    return {
        "name": change.name,
        "before": change.before.to_dict() if change.before else None,
        "after": change.after.to_dict() if change.after else None,
    }


def _show_history(steps: tuple[Step, ...], session: Session) -> None:
    session.emit({"generations": [_step(step, is_current=step is steps[-1]) for step in steps]})
    if session.is_json:
        return
    if not steps:
        session.say(f"nothing was ever installed in {session.layout.root}")
        return
    session.say(_table(steps))


def _table(steps: tuple[Step, ...]) -> str:
    """Return the generations, newest first; a narrow terminal gets fewer of the changes, and is told how many more."""
    header = ("GENERATION", "CREATED", "CHANGES", "NOTE")
    there = {step.number for step in steps}
    newest_first = steps[::-1]
    notes = [_note(step, is_current=step is steps[-1]) for step in newest_first]
    width = terminal_width()
    beside = min(max(map(len, notes)), _NOTE) + len("  ".join((header[0], "YYYY-MM-DDThh:mm:ssZ", "", "")))
    room = None if width is None else max(width - beside, _LEAST)
    rows = [
        (
            str(step.number),
            step.generation.created if step.generation else "-",
            _changes(step, room, is_before_there=step.number - 1 in there),
            note,
        )
        for step, note in zip(newest_first, notes, strict=True)
    ]
    return fitted(header, rows, width, least=_NOTE)


def _step(step: Step, *, is_current: bool) -> dict[str, object]:
    generation = step.generation
    return {
        "number": step.number,
        "created": generation.created if generation else None,
        "is_current": is_current,
        "plugins": [{"name": one.name, "release": one.release} for one in generation.plugins] if generation else None,
        "changes": None if step.changes is None else [_as_dict(change) for change in step.changes],
        "missing": [{"name": entry.name, "release": entry.release} for entry in step.missing],
        "damage": step.damage or None,
    }


def _note(step: Step, *, is_current: bool) -> str:
    notes = ["current"] if is_current else []
    if step.missing:
        notes.append("cannot be returned to, freed: " + ", ".join(f"{one.name} {one.release}" for one in step.missing))
    if step.damage:
        notes.append(f"damaged: {step.damage}")
    return "; ".join(notes) or "-"


def _changes(step: Step, room: int | None, *, is_before_there: bool) -> str:
    if step.changes is None:
        before = "is damaged" if is_before_there else "was freed"
        return f"{count(len(step.generation.plugins), 'plugin')}; what was before {before}" if step.generation else "-"
    texts = [str(change) for change in step.changes]
    shown = len(texts[:_SHOWN])
    while shown > 1 and room is not None and len(_first(texts, shown)) > room:
        shown -= 1
    return _first(texts, shown)


def _first(texts: list[str], shown: int) -> str:
    more = f" and {len(texts) - shown} more" if len(texts) > shown else ""
    return (", ".join(texts[:shown]) + more) or "none"
