"""The weights' reader: what it reads back, and every malformed file that it refuses."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tests.examples.plugin_trees import imported

TREE = Path(__file__).resolve().parents[1] / "plugin"


@pytest.fixture(scope="module")
def safetensors_file() -> Iterator[ModuleType]:
    with imported("safetensors_file", TREE) as module:
        yield module


def write(path: Path, header: dict[str, Any], payload: bytes) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + payload)
    return path


def entry(dtype: str = "F32", shape: Any = (2, 2), offsets: Any = (0, 16)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_tensors_come_back_by_name(safetensors_file: ModuleType, tmp_path: Path) -> None:
    header = {"__metadata__": {"by": "hand"}, "a": entry(), "b": entry(shape=[1], offsets=[16, 20])}
    path = write(tmp_path / "w", header, struct.pack("<5f", 1, 2, 3, 4, 5))

    tensors = safetensors_file.read(path)

    assert tensors.keys() == {"a", "b"}
    assert torch.equal(tensors["a"], torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert torch.equal(tensors["b"], torch.tensor([5.0]))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (entry(offsets=[0, 12]), "tensor `a` of shape [2, 2] cannot lie at bytes 0 to 12"),
        (entry(offsets=[8, 24]), "tensor `a` of shape [2, 2] cannot lie at bytes 8 to 24"),
        (entry(offsets=[-16, 0]), "tensor `a` of shape [2, 2] cannot lie at bytes -16 to 0"),
        (entry(shape=[0], offsets=[0, 0]), "tensor `a` of shape [0] cannot lie at bytes 0 to 0"),
        (
            entry(dtype="F16"),
            "tensor `a` is not described as float32 with shape and data_offsets: "
            "{'dtype': 'F16', 'shape': [2, 2], 'data_offsets': [0, 16]}",
        ),
        ({}, "tensor `a` is not described as float32 with shape and data_offsets: {}"),
    ],
)
def test_a_tensor_that_does_not_fit_its_file_is_refused(
    safetensors_file: ModuleType, tmp_path: Path, facts: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "w", {"a": facts}, bytes(16))

    with pytest.raises(ValueError) as refusal:
        safetensors_file.read(path)

    assert str(refusal.value) == message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a safetensors file: a header of 0 bytes in a file of 0"),
        (b"\xff" * 8, "not a safetensors file: a header of 18446744073709551615 bytes in a file of 8"),
        (struct.pack("<Q", 3) + b"{}", "not a safetensors file: a header of 3 bytes in a file of 10"),
    ],
)
def test_a_file_without_a_whole_header_is_refused(
    safetensors_file: ModuleType, tmp_path: Path, data: bytes, message: str
) -> None:
    (tmp_path / "w").write_bytes(data)

    with pytest.raises(ValueError) as refusal:
        safetensors_file.read(tmp_path / "w")

    assert str(refusal.value) == message
