"""`spm run`."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manifests.errors import WorkerError
from spm_client.cli.session import Session

if TYPE_CHECKING:
    from manifests.parts import TensorSpec
    from runtime.host import Host

MAX_SECONDS = 604_800


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="an installed plugin")
    parser.add_argument(
        "--input",
        "-i",
        action="append",
        required=True,
        metavar="FILE",
        help="one input tensor: .wav (mono, 16 bit), .npy, .pt or .json; once for each input, in order",
    )
    parser.add_argument("--output", "-o", metavar="FILE", help="write the result to FILE: .json, .pt or .npy")
    parser.add_argument("--device", metavar="DEVICE", help="run on this device of its affinity, or not at all")
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=600.0, help="end the call after this time (default: 600)"
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: more than 0 and at most {MAX_SECONDS} seconds")
    return seconds


def run(options: argparse.Namespace, session: Session) -> int:
    from runtime.host import Host
    from runtime.tensor_files import check_output, summary, write_result
    from spm_client.cli.store_of import installed_names, parse_installed
    from spm_client.workflows.near import suggesting_installed

    name = parse_installed(options.name)
    output = Path(options.output) if options.output else None
    if output is not None:
        check_output(output)
    # Not entered: that would start every core plugin, and one plugin was asked for.
    host = Host(session.layout.root, call_deadline=options.timeout)
    with suggesting_installed(name, lambda: installed_names(session)):
        manifest = host.describe(name)
    result, stats = _call(host, name, options, manifest.inputs, session)
    if output is not None:
        write_result(result, output)
    told = summary(result)
    session.emit({"name": name, "device": stats["device"], "outputs": told, "output": options.output, "stats": stats})
    if not session.is_json:
        print(f"{name} ran on {stats['device']}")
        for line in _lines(_named(result, manifest.outputs), ""):
            print(f"  {line}")
        if output is not None:
            print(f"wrote {output}")
    return 0


def _call(
    host: "Host", name: str, options: argparse.Namespace, declared: "Sequence[TensorSpec]", session: Session
) -> tuple[Any, dict[str, Any]]:
    from runtime.tensor_files import read_tensor

    dtypes = [spec.dtype for spec in declared] + ["float32"] * len(options.input)
    inputs = [read_tensor(Path(path), dtype) for path, dtype in zip(options.input, dtypes, strict=False)]
    try:
        instance = host.load(name, options.device)
        return instance(*inputs), instance.stats()
    except WorkerError as error:
        _tell(error, session)
        raise
    finally:
        host.close()


def _tell(error: WorkerError, session: Session) -> None:
    """Print what the plugin printed and where it raised, before the refusal is printed."""
    from runtime.output import excerpt
    from runtime.process import NEXT_CALL_HINT, TRACEBACK_HINT

    for title, member in (("the plugin printed:", "output"), ("the plugin's traceback:", "traceback")):
        if lines := excerpt(str(error.context.get(member, ""))):
            print(title, *(f"  {line}" for line in lines), sep="\n", file=sys.stderr)
    # These help who holds the error, or the JSON of it; here it has all been said.
    if not session.is_json and error.hint in {TRACEBACK_HINT, NEXT_CALL_HINT}:
        error.hint = ""


def _named(result: Any, declared: "Sequence[TensorSpec]") -> Any:
    """Return the result by its declared names; where it has names of its own, or none are declared, as it is."""
    if not declared or isinstance(result, dict):
        return result
    values = result if isinstance(result, list | tuple) else [result]
    return {spec.name: value for spec, value in zip(declared, values, strict=True)}


def _lines(value: Any, name: str) -> Iterator[str]:
    """Yield a line for each tensor or plain value of a result: `speech  float32 [1, 253]  0.003 to 1.0, mean 0.57`."""
    from runtime.output import printable
    from runtime.tensor_files import summary

    if isinstance(value, dict):
        for inner, item in value.items():
            yield from _lines(item, f"{name}.{inner}" if name else str(inner))
        return
    if isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _lines(item, f"{name}[{place}]")
        return
    # Names and texts are the plugin's own words.
    shown = printable(name or "output")
    if value is None or isinstance(value, str | int | float):
        yield f"{shown}  {printable(json.dumps(value, ensure_ascii=False))}"
        return
    told = summary(value)
    values = f"  {_shown(told['min'])} to {_shown(told['max'])}, mean {_shown(told['mean'])}" if "mean" in told else ""
    yield f"{shown}  {told['dtype']} {told['shape']}{values}"


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"
