"""Files as tensors: what can be read, and what is said of the rest."""

import json
import wave
from pathlib import Path

import numpy as np
import pytest
import torch

from manifests.errors import UsageError
from runtime.tensor_files import check_output, read_tensor, summary, write_result


def refused(path: Path, dtype: str = "float32") -> str:
    with pytest.raises(UsageError) as refusal:
        read_tensor(path, dtype)
    return refusal.value.message


def write_wav(path: Path, samples: bytes) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(samples)
    return path


def test_each_kind_of_file_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([1, 2], dtype=np.int16))
    torch.save(torch.tensor([True]), tmp_path / "a.pt")
    (tmp_path / "a.json").write_text("[[1, 2.5]]")

    tensors = [read_tensor(write_wav(tmp_path / "a.wav", b"\0\x40\0\xc0"))]
    tensors += [read_tensor(tmp_path / name) for name in ("a.npy", "a.pt", "a.json")]

    assert [(tensor.dtype, tensor.tolist()) for tensor in tensors] == [
        (torch.float32, [[0.5, -0.5]]),
        (torch.int16, [1, 2]),
        (torch.bool, [True]),
        (torch.float32, [[1.0, 2.5]]),
    ]


@pytest.mark.parametrize("name", ["x.wav", "x.npy", "x.pt", "x.json"])
def test_empty_file_is_called_empty(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch()

    assert refused(path) == f"`{path}` is not a valid {path.suffix} file: it is empty"


def test_file_that_ends_too_early_says_so(tmp_path: Path) -> None:
    path = write_wav(tmp_path / "x.wav", b"\0" * 100)
    path.write_bytes(path.read_bytes()[:20])

    assert refused(path) == f"`{path}` is not a valid .wav file: it ends too early"


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("x.wav", b"text", "it ends too early"),
        ("x.wav", b"some text that is longer", "file does not start with RIFF id"),
        ("x.npy", b"PK\x03\x04 not really", "File is not a zip file"),
        ("x.json", b"[1, ", "Expecting value: line 1 column 5 (char 4)"),
        ("x.json", b"[[1], [1, 2]]", "expected sequence of length 1 at dim 1 (got 2)"),
    ],
)
def test_file_that_is_not_what_its_name_says_is_refused_with_the_reason(
    tmp_path: Path, name: str, data: bytes, why: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)

    assert refused(path) == f"`{path}` is not a valid {path.suffix} file: {why}"


def test_json_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[" * 100_000)

    assert refused(path).startswith(f"`{path}` is not a valid .json file: maximum recursion depth exceeded")


def test_unknown_extension_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.mp3"

    assert refused(path) == f"`{path}` has an unsupported extension: the name must end in .wav, .npy, .pt, .json"


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [("int64", [[1, 2]]), ("uint8", [255]), ("bool", [1, 0]), ("float64", [0.1]), ("int32", [1.0]), ("complex64", [1])],
)
def test_numbers_of_a_json_file_become_the_dtype_that_is_asked_for(
    tmp_path: Path, dtype: str, numbers: list[float]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(numbers))

    tensor = read_tensor(path, dtype)

    assert (tensor.dtype, tensor.tolist()) == (getattr(torch, dtype), numbers)


@pytest.mark.parametrize(("dtype", "numbers"), [("int64", [1.5]), ("uint8", [-1]), ("bool", [2])])
def test_number_that_the_dtype_does_not_have_is_refused_not_changed(
    tmp_path: Path, dtype: str, numbers: list[float]
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(numbers))

    assert refused(path, dtype) == f"`{path}` holds numbers that are no {dtype}"


def test_output_that_could_not_be_written_is_refused_before_there_is_a_result(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as unknown:
        check_output(tmp_path / "x.wav")
    with pytest.raises(UsageError) as nowhere:
        check_output(tmp_path / "nowhere" / "x.pt")

    assert unknown.value.message == (
        f"`{tmp_path}/x.wav` has an unsupported extension: the name must end in .json, .pt, .npy"
    )
    assert nowhere.value.message == (
        f"`{tmp_path}/nowhere/x.pt` cannot be written: there is no folder `{tmp_path}/nowhere`"
    )


def test_what_json_cannot_hold_is_told_in_words_and_not_written(tmp_path: Path) -> None:
    result = torch.tensor([1.0, float("nan"), float("inf")])

    with pytest.raises(UsageError) as refused:
        write_result(result, tmp_path / "y.json")

    assert refused.value.message == (
        f"`{tmp_path / 'y.json'}` cannot hold NaN or an infinity, and the result has one: use .pt or .npy"
    )
    assert not (tmp_path / "y.json").exists()
    assert summary(result) == {"dtype": "float32", "shape": [3], "min": "nan", "mean": "nan", "max": "nan"}


@pytest.mark.parametrize(
    ("name", "dtype", "message"),
    [
        ("y.npy", torch.bfloat16, "cannot hold bfloat16, which numpy does not have: use .pt"),
        ("y.npy", torch.float8_e5m2, "cannot hold float8_e5m2, which numpy does not have: use .pt"),
        ("y.json", torch.complex64, "cannot hold complex numbers, and the result has some: use .pt or .npy"),
    ],
)
def test_a_result_that_its_file_cannot_hold_is_refused(
    tmp_path: Path, name: str, dtype: torch.dtype, message: str
) -> None:
    with pytest.raises(UsageError) as refusal:
        write_result(torch.zeros(2).to(dtype), tmp_path / name)

    assert refusal.value.message == f"`{tmp_path / name}` {message}"
