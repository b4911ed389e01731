"""`spm run`."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from manifests.names import fold, parse_name
from spm_client.cli.session import Session

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
    seconds = float(text)
    if not 0 < seconds < MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time from 0 to {MAX_SECONDS} s")
    return seconds


def run(options: argparse.Namespace, session: Session) -> int:
    from runtime.host import Host
    from runtime.tensor_files import read_tensor, summary, write_result

    name = parse_name(fold(options.name))
    inputs = [read_tensor(Path(path)) for path in options.input]
    # Not entered: that would start every core plugin, and one plugin was asked for.
    host = Host(session.layout.root, call_deadline=options.timeout)
    try:
        instance = host.load(name, options.device)
        result = instance(*inputs)
        stats = instance.stats()
    finally:
        host.close()
    if options.output:
        write_result(result, Path(options.output))
    told = summary(result)
    session.emit({"name": name, "device": stats["device"], "outputs": told, "output": options.output, "stats": stats})
    if not session.is_json:
        print(f"{name} ran on {stats['device']}")
        for line in _lines(told, ""):
            print(f"  {line}")
    return 0


def _lines(told: Any, name: str) -> Iterator[str]:
    """Yield a line for each tensor or plain value of a result: `speech  float32 [1, 253]  0.003 to 1.0, mean 0.57`."""
    if isinstance(told, dict) and "dtype" not in told:
        for inner, value in told.items():
            yield from _lines(value, f"{name}.{inner}" if name else inner)
    elif isinstance(told, list):
        for place, value in enumerate(told):
            yield from _lines(value, f"{name}[{place}]")
    elif isinstance(told, dict):
        values = f"  {told['min']:g} to {told['max']:g}, mean {told['mean']:g}" if "mean" in told else ""
        yield f"{name or 'output'}  {told['dtype']} {told['shape']}{values}"
    else:
        yield f"{name or 'output'}  {json.dumps(told, ensure_ascii=False)}"
