"""`spm search`."""

import argparse
import textwrap

from manifests.batching import BatchMode
from manifests.devices import parse_device
from manifests.errors import UsageError
from manifests.names import MAX_NAME_LENGTH, fold
from runtime.registries import registry_ids
from spm_client.cli.session import Session
from spm_client.render import roomy, table, terminal_width, warn
from spm_client.workflows.near import listed
from spm_client.workflows.search import MAX_QUERY, MAX_RESULTS, MAX_WORDS, Found, Hit, Query, search

WIDTH = 100
_LEAST_SUMMARY = 16
_SPARE = ("CLASS", "BATCH", "DEVICES")
"""What is left out first where the terminal is too narrow; `spm info NAME` and `--json` have it."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "What a search tells is the registry's own word, signed by nobody: it helps to find a name, and proves "
        "nothing. `spm info NAME` shows what is proven."
    )
    parser.add_argument("words", nargs="*", metavar="WORD", help="must be in the name or the summary")
    parser.add_argument("--device", metavar="DEVICE", help="only plugins whose author names it: `cpu`, `cuda:sm_86`")
    parser.add_argument("--batch", metavar="MODE", help="only this batch policy: adaptive, static or none")
    parser.add_argument("--limit", metavar="N", type=_limit, default=20, help=f"show N at most, 1 to {MAX_RESULTS}")


def run(options: argparse.Namespace, session: Session) -> int:
    conf = session.conf()
    words = _words(options.words)
    query = Query(
        words=words,
        device=str(parse_device(options.device)) if options.device is not None else None,
        batch=_batch(options.batch),
        limit=options.limit,
        # One word may be a name that was meant to be whole.
        near=fold(words[0])[:MAX_NAME_LENGTH] if len(words) == 1 else None,
    )
    with session.client(conf) as client:
        found = search(client, query, conf.registry_id)
    installed = {str(entry.name): str(entry.version) for entry in session.generation(conf.registry_id).plugins}
    near = () if found.hits else found.near
    session.emit(
        {
            "registry": conf.registry_id,
            "results": [{**hit.to_dict(), "installed": installed.get(hit.name)} for hit in found.hits],
            "is_cut": found.is_cut,
            "near": list(near),
        }
    )
    if found.hits and not session.is_json:
        _show(found, installed)
    if not found.hits:
        session.say(f"the registry `{conf.registry_id}` tells of no such plugin")
        if any(sign in word for word in words for sign in "*?[^$"):
            warn(
                "  hint: a word is looked for as it is written and is no pattern; `spm search` alone shows all there is"
            )
        if near:
            warn(f"  hint: did you mean {listed(near)}?")
    for registry in registry_ids(session.layout.root):
        warn(f"note: {registry} was not asked; `spm info {registry}/NAME` asks it for a plugin")
    return 0


def _show(found: Found, installed: dict[str, str]) -> None:
    header: tuple[str, ...] = ("NAME", "NEWEST", "CLASS", "DEVICES", "BATCH", "INSTALLED", "SUMMARY")
    rows = [_row(hit, installed.get(hit.name, "-")) for hit in found.hits]
    header, rows, room = roomy(
        header, rows, terminal_width() or WIDTH, wrapped="SUMMARY", spare=_SPARE, least=_LEAST_SUMMARY
    )
    print(table(header, [(*row[:-1], textwrap.shorten(row[-1], room, placeholder="...")) for row in rows]))
    if found.is_cut:
        warn(f"note: there are more than these {len(rows)}; another word, or `--limit N`, shows others")


def _row(hit: Hit, installed: str) -> tuple[str, ...]:
    return (
        hit.name,
        f"{hit.version} (yanked)" if hit.yanked else str(hit.version),
        hit.type,
        ",".join(hit.devices) or "-",
        hit.batch or "-",
        installed,
        f"yanked: {hit.yanked}" if hit.yanked else hit.summary,
    )


def _words(given: list[str]) -> tuple[str, ...]:
    words = tuple(" ".join(given).split())
    if len(words) > MAX_WORDS or len(" ".join(words)) > MAX_QUERY or not all(map(str.isprintable, words)):
        raise UsageError(f"a search takes up to {MAX_WORDS} words with {MAX_QUERY} printable characters in all")
    return words


def _batch(mode: str | None) -> str | None:
    if mode is not None and mode not in {known.value for known in BatchMode}:
        raise UsageError(f"`--batch {mode}`: a batch policy is `adaptive`, `static` or `none`")
    return mode


def _limit(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MAX_RESULTS:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is not a whole number from 1 to {MAX_RESULTS}")
    return int(text[:9])
