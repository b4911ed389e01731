"""Files as tensors and back: .wav, .npy, .pt, .json in; .npy, .pt, .json out. Runs no plugin, unpickles no code."""

import json
import math
import os
import wave
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from manifests.errors import UsageError
from runtime.torch_here import require_torch

if TYPE_CHECKING:
    import torch

MAX_INPUT_BYTES = 1 << 32


def read_tensor(path: Path, dtype: str = "float32") -> "torch.Tensor":
    """Return the tensor in a file; a mono WAV of 16-bit samples becomes float32 in [-1, 1) of shape [1, samples].

    `dtype` is what the numbers of a .json file become; the other kinds of file have their own.
    Raises: UsageError when the file is not there, beyond 4 GiB, of another kind, or not what its name says;
    IncompatibleTarget when there is no torch.
    """
    read: Callable[[Path, str], torch.Tensor] = _choose(_READERS, path)
    require_torch(f"reading `{path}`")
    try:
        _check_size(path)
        return read(path, dtype)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {os.strerror(error.errno or 0)}", path=str(path)) from error
    except _UNREADABLE as error:
        raise _not_valid(path, str(error) or "it ends too early") from error


def check_output(path: Path) -> None:
    """Check, before there is a result, that a file of this name can be written.

    Raises: UsageError when the name ends in no known way or its folder is not there.
    """
    _choose(_WRITERS, path)
    if not path.parent.is_dir():
        raise UsageError(f"`{path}` cannot be written: there is no folder `{path.parent}`", path=str(path))


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
            "min": _told(values.min().item()),
            "mean": _told(values.mean().item()),
            "max": _told(values.max().item()),
        }
    return told


def _told(value: float) -> float | str:
    """Return a number that JSON can hold; NaN and the infinities have no place there, so they are told as words."""
    return round(value, 6) if math.isfinite(value) else str(value)


def _choose(table: dict[str, Callable[..., Any]], path: Path) -> Callable[..., Any]:
    try:
        return table[path.suffix.lower()]
    except KeyError as error:
        raise UsageError(
            f"`{path}` has an unsupported extension: the name must end in {', '.join(table)}", path=str(path)
        ) from error


def _check_size(path: Path) -> None:
    size = path.stat().st_size
    if size > MAX_INPUT_BYTES:
        raise UsageError(f"`{path}` has more than the {MAX_INPUT_BYTES} bytes allowed")
    if not size and path.is_file():
        raise _not_valid(path, "it is empty")


def _not_valid(path: Path, why: str) -> UsageError:
    return UsageError(f"`{path}` is not a valid {path.suffix} file: {why}", path=str(path))


def _read_wav(path: Path, _: str) -> "torch.Tensor":
    import torch

    with wave.open(str(path), "rb") as file:
        channels, width, frames = file.getnchannels(), file.getsampwidth(), file.getnframes()
        if channels != 1 or width != 2:
            raise UsageError(f"`{path}` has {channels} channels of {8 * width} bits; one channel of 16 bits is needed")
        samples = bytearray(file.readframes(frames))
    if not samples:
        raise UsageError(f"`{path}` holds no samples")
    return torch.frombuffer(samples, dtype=torch.int16).to(torch.float32).div_(32768.0).unsqueeze(0)


def _read_npy(path: Path, _: str) -> "torch.Tensor":
    import torch

    # Opened here, since numpy leaves a file that it opened open where its bytes are not as they must be.
    with path.open("rb") as file:
        return torch.from_numpy(_numpy().load(file, allow_pickle=False))


def _read_pt(path: Path, _: str) -> "torch.Tensor":
    import pickle

    import torch

    try:
        value = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise UsageError(f"`{path}` holds more than plain tensors, and no code is loaded from inputs") from error
    if not isinstance(value, torch.Tensor):
        raise UsageError(f"`{path}` holds a {type(value).__name__}, not one tensor")
    return value


def _read_json(path: Path, dtype: str) -> "torch.Tensor":
    import torch

    value, wanted = json.loads(path.read_bytes()), getattr(torch, dtype)
    tensor = torch.tensor(value, dtype=wanted)
    # torch cuts 1.5 down to 1 and wraps -1 round to 255 without a word.
    if not wanted.is_floating_point and not wanted.is_complex and tensor.tolist() != value:
        raise UsageError(f"`{path}` holds numbers that are no {dtype}", path=str(path))
    return tensor


def _write_npy(result: Any, path: Path) -> None:
    import torch

    if not isinstance(result, torch.Tensor):
        raise UsageError(
            f"`{path}` can hold one tensor, and the plugin gave a {type(result).__name__}: use .json or .pt"
        )
    numpy = _numpy()
    try:
        values = result.numpy()
    except TypeError as error:
        dtype = str(result.dtype).removeprefix("torch.")
        raise UsageError(f"`{path}` cannot hold {dtype}, which numpy does not have: use .pt") from error
    numpy.save(path, values, allow_pickle=False)


def _write_pt(result: Any, path: Path) -> None:
    import torch

    torch.save(result, path)


def _write_json(result: Any, path: Path) -> None:
    try:
        text = json.dumps(_plain(result), allow_nan=False)
    except ValueError as error:
        raise UsageError(f"`{path}` cannot hold NaN or an infinity, and the result has one: use .pt or .npy") from error
    except TypeError as error:
        raise UsageError(f"`{path}` cannot hold complex numbers, and the result has some: use .pt or .npy") from error
    path.write_text(text, encoding="utf-8")


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


_UNREADABLE = (
    ValueError,
    EOFError,
    wave.Error,
    zipfile.BadZipFile,
    RuntimeError,
    TypeError,
    OverflowError,
    RecursionError,
)
_READERS = {".wav": _read_wav, ".npy": _read_npy, ".pt": _read_pt, ".json": _read_json}
_WRITERS = {".json": _write_json, ".pt": _write_pt, ".npy": _write_npy}
