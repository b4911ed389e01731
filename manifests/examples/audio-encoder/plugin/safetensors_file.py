"""Reads the float32 tensors of a safetensors file. Does not write, map or convert."""

import json
import math
import struct
from pathlib import Path

import torch
from torch import Tensor

MAX_HEADER_BYTES = 1 << 20


def read(path: Path) -> dict[str, Tensor]:
    """Return every tensor of the file by name.

    Raises:
        ValueError: the header is malformed, a tensor is not float32 or lies outside the file.
    """
    data = bytearray(path.read_bytes())
    start = 8 + _header_size(data)
    header = json.loads(data[8:start])
    header.pop("__metadata__", None)
    return {name: _tensor(name, facts, data, start) for name, facts in header.items()}


def _header_size(data: bytearray) -> int:
    size: int = struct.unpack_from("<Q", data)[0] if len(data) >= 8 else len(data)
    if size > min(MAX_HEADER_BYTES, len(data) - 8):
        raise ValueError(f"not a safetensors file: a header of {size} bytes in a file of {len(data)}")
    return size


def _tensor(name: str, facts: object, data: bytearray, start: int) -> Tensor:
    match facts:
        case {"dtype": "F32", "shape": [*sizes], "data_offsets": [int(begin), int(end)]}:
            shape = [size for size in sizes if isinstance(size, int) and size > 0]
            count = math.prod(shape)
        case _:
            raise ValueError(f"tensor `{name}` is not described as float32 with shape and data_offsets: {facts}")
    if len(shape) != len(sizes) or begin < 0 or begin + 4 * count != end or end > len(data) - start:
        raise ValueError(f"tensor `{name}` of shape {sizes} cannot lie at bytes {begin} to {end}")
    return torch.frombuffer(data, dtype=torch.float32, count=count, offset=start + begin).reshape(shape)
