"""Files as tensors and back: .wav, .npy, .pt, .json in; .npy, .pt, .json out. Runs no plugin, unpickles no code."""

import json
import os
import wave
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manifests.errors import UsageError

if TYPE_CHECKING:
    import torch

MAX_INPUT_BYTES = 1 << 32


def read_tensor(path: Path) -> "torch.Tensor":
    """Return the tensor in a file; a mono WAV of 16-bit samples becomes float32 in [-1, 1) of shape [1, samples].

    Raises: UsageError when the file is not there, beyond 4 GiB, of another kind, or not what its name says.
    """
    read: Callable[[Path], torch.Tensor] = _choose(_READERS, path)
    try:
        if path.stat().st_size > MAX_INPUT_BYTES:
            raise UsageError(f"`{path}` has more than the {MAX_INPUT_BYTES} bytes allowed")
        return read(path)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {os.strerror(error.errno or 0)}", path=str(path)) from error
    except (ValueError, EOFError, wave.Error, RuntimeError, TypeError) as error:
        raise UsageError(f"`{path}` is not a sound {path.suffix} file: {error}", path=str(path)) from error


def write_result(result: Any, path: Path) -> None:
    """Write what a plugin gave: .json and .pt hold any of it, .npy holds a single tensor."""
    write = _choose(_WRITERS, path)
    try:
        write(result, path)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be written: {os.strerror(error.errno or 0)}", path=str(path)) from error


def summary(result: Any) -> Any:
    """Return JSON that tells what a result is: dtype, shape and the range of values of each tensor."""
    import torch

    if isinstance(result, dict):
        return {name: summary(value) for name, value in result.items()}
    if isinstance(result, list | tuple):
        return [summary(value) for value in result]
    if not isinstance(result, torch.Tensor):
        return result
    told: dict[str, Any] = {"dtype": str(result.dtype).removeprefix("torch."), "shape": list(result.shape)}
    if result.numel() and not result.is_complex():
        values = result.double()
        told |= {
            "min": round(values.min().item(), 6),
            "mean": round(values.mean().item(), 6),
            "max": round(values.max().item(), 6),
        }
    return told


def _choose(table: dict[str, Callable[..., Any]], path: Path) -> Callable[..., Any]:
    try:
        return table[path.suffix.lower()]
    except KeyError as error:
        raise UsageError(
            f"`{path}` is of no kind that can be used here: the name must end in {', '.join(table)}", path=str(path)
        ) from error


def _read_wav(path: Path) -> "torch.Tensor":
    import torch

    with wave.open(str(path), "rb") as file:
        channels, width, frames = file.getnchannels(), file.getsampwidth(), file.getnframes()
        if channels != 1 or width != 2:
            raise UsageError(f"`{path}` has {channels} channels of {8 * width} bits; one channel of 16 bits is needed")
        samples = bytearray(file.readframes(frames))
    if not samples:
        raise UsageError(f"`{path}` holds no samples")
    return torch.frombuffer(samples, dtype=torch.int16).to(torch.float32).div_(32768.0).unsqueeze(0)


def _read_npy(path: Path) -> "torch.Tensor":
    import torch

    return torch.from_numpy(_numpy().load(path, allow_pickle=False))


def _read_pt(path: Path) -> "torch.Tensor":
    import pickle

    import torch

    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UsageError(f"`{path}` holds more than plain tensors, and no code is loaded from inputs") from error
    if not isinstance(value, torch.Tensor):
        raise UsageError(f"`{path}` holds a {type(value).__name__}, not one tensor")
    return value


def _read_json(path: Path) -> "torch.Tensor":
    import torch

    return torch.tensor(json.loads(path.read_bytes()), dtype=torch.float32)


def _write_npy(result: Any, path: Path) -> None:
    import torch

    if not isinstance(result, torch.Tensor):
        raise UsageError(
            f"`{path}` can hold one tensor, and the plugin gave a {type(result).__name__}: use .json or .pt"
        )
    _numpy().save(path, result.numpy(), allow_pickle=False)


def _write_pt(result: Any, path: Path) -> None:
    import torch

    torch.save(result, path)


def _write_json(result: Any, path: Path) -> None:
    path.write_text(json.dumps(_plain(result)), encoding="utf-8")


def _plain(result: Any) -> Any:
    import torch

    if isinstance(result, dict):
        return {name: _plain(value) for name, value in result.items()}
    if isinstance(result, list | tuple):
        return [_plain(value) for value in result]
    return result.tolist() if isinstance(result, torch.Tensor) else result


def _numpy() -> Any:
    try:
        import numpy as np
    except ModuleNotFoundError as error:
        raise UsageError(".npy files need numpy, which is not installed", hint="`pip install numpy`") from error
    return np


_READERS = {".wav": _read_wav, ".npy": _read_npy, ".pt": _read_pt, ".json": _read_json}
_WRITERS = {".json": _write_json, ".pt": _write_pt, ".npy": _write_npy}
