"""The three releases of audio-encoder: the network against the original model, the build, and their differences."""

import runpy
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.examples.plugin_trees import EXAMPLES, PluginContext, build, imported, run_build

SOURCE = Path(__file__).resolve().parents[1]
SOURCES = {"1.4.0": SOURCE / "older" / "1.4.0", "2.0.4": SOURCE / "older" / "2.0.4", "2.0.5": SOURCE}
LOG_MEL = EXAMPLES / "log-mel" / "plugin"
RECIPE = runpy.run_path(str(SOURCE / "build.py"))

Encoder = Callable[[Tensor], dict[str, Tensor]]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with the wheel in it, or skip."""
    folder = tmp_path_factory.mktemp("cache")
    build(SOURCE, tmp_path_factory.mktemp("first"), SPM_EXAMPLES_CACHE=str(folder))
    return folder


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("audio-encoder")
    return {
        version: build(source, folder / version, SPM_EXAMPLES_CACHE=str(cache)) for version, source in SOURCES.items()
    }


@pytest.fixture
def encode(trees: dict[str, Path]) -> Iterator[Encoder]:
    with imported("audio_encoder", trees["2.0.5"], LOG_MEL) as module:
        yield start(module, trees, "2.0.5")


def start(module: ModuleType, trees: dict[str, Path], version: str) -> Encoder:
    encoder: Encoder = module.factory(PluginContext(path=trees[version], name="audio-encoder", version=version))
    return encoder


def clips(batch: int = 3, samples: int = 20_000) -> Tensor:
    """Return noise with a slow swell, different in each clip."""
    noise = torch.randn(batch, samples, generator=torch.Generator().manual_seed(11))
    return 0.3 * noise * torch.linspace(0.0, 1.0, samples) ** torch.arange(1, batch + 1)[:, None]


def names_in_the_original() -> dict[str, str]:
    """Map our network's weights to those of the original TorchScript model."""
    names = {"stft_conv.weight": "stft.forward_basis_buffer"}
    for part in ("weight", "bias"):
        names |= {f"conv{layer + 1}.{part}": f"encoder.{layer}.reparam_conv.{part}" for layer in range(4)}
        names |= {f"lstm_cell.{part}_{side}": f"decoder.rnn.{part}_{side}" for side in ("ih", "hh")}
        names |= {f"final_conv.{part}": f"decoder.decoder.2.{part}"}
    return names


def load_original(path: str) -> Any:
    return torch.jit.load(path)  # type: ignore[no-untyped-call]


def original_probabilities(model: Any, waveform: Tensor) -> Tensor:
    """Feed the original model 512 samples at a time, as its users do."""
    model.reset_states()
    padded = torch.nn.functional.pad(waveform, (0, -waveform.shape[1] % 512))
    with torch.inference_mode():
        return torch.cat([model(chunk, 16_000) for chunk in torch.split(padded, 512, dim=1)], dim=1)


@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("samples", [512, 6_000])
def test_the_network_equals_the_original_torchscript_model_when_given_its_weights(
    trees: dict[str, Path], cache: Path, tmp_path: Path, samples: int
) -> None:
    with zipfile.ZipFile(cache / RECIPE["WHEEL"]) as wheel:
        model = load_original(wheel.extract("silero_vad/data/silero_vad.jit", tmp_path))
    weights = {ours: model.state_dict()[f"_model.{theirs}"] for ours, theirs in names_in_the_original().items()}
    with imported("silero_network", trees["2.0.5"]) as module:
        network = module.SileroNetwork()
    network.load_state_dict(weights)
    waveform = clips(samples=samples)

    # The profiling compiler would take seconds for a few windows.
    with torch.jit.optimized_execution(False):  # type: ignore[attr-defined]
        expected = original_probabilities(model, waveform)

    torch.testing.assert_close(network(waveform).detach(), expected, rtol=0, atol=1e-5)


def test_a_batch_equals_its_clips_one_by_one(encode: Encoder) -> None:
    together = encode(clips())

    singles = [encode(clip[None]) for clip in clips()]

    for name in ("speech", "embedding"):
        torch.testing.assert_close(together[name], torch.cat([one[name] for one in singles]), rtol=1e-4, atol=1e-4)


def test_embedding_is_the_weighted_mean_and_deviation_of_the_log_mel_features(
    encode: Encoder, trees: dict[str, Path]
) -> None:
    clip = clips(batch=1, samples=5120)
    with imported("log_mel", LOG_MEL) as log_mel:
        features = log_mel.log_mel_spectrogram(clip)[0].double()
    outputs = encode(clip)

    weight = [float(outputs["speech"][0, min(160 * t // 512, 9)]) for t in range(33)]
    mean = [sum(w * float(x) for w, x in zip(weight, band, strict=True)) / sum(weight) for band in features]
    deviation = [
        (sum(w * (float(x) - m) ** 2 for w, x in zip(weight, band, strict=True)) / sum(weight)) ** 0.5
        for band, m in zip(features, mean, strict=True)
    ]

    torch.testing.assert_close(outputs["embedding"][0], torch.tensor(mean + deviation), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("samples", "windows"), [(1, 1), (512, 1), (513, 2), (16_000, 32)])
def test_each_512_samples_give_one_probability_and_a_rest_counts(encode: Encoder, samples: int, windows: int) -> None:
    outputs = encode(torch.zeros(2, samples))

    assert outputs["speech"].shape == (2, windows)
    assert outputs["embedding"].shape == (2, 160)
    assert outputs["embedding"].isfinite().all()


def test_2_0_4_gives_the_same_result_one_clip_after_another(trees: dict[str, Path], encode: Encoder) -> None:
    newest = encode(clips())
    with imported("audio_encoder", trees["2.0.4"], LOG_MEL) as module:
        older = start(module, trees, "2.0.4")(clips())

    assert older.keys() == newest.keys()
    for name in newest:
        torch.testing.assert_close(older[name], newest[name], rtol=1e-4, atol=1e-4)


def test_1_4_0_gives_speech_only_and_needs_no_log_mel(trees: dict[str, Path], encode: Encoder) -> None:
    newest = encode(clips())
    with imported("audio_encoder", trees["1.4.0"]) as module:
        older = start(module, trees, "1.4.0")(clips())

    assert older.keys() == {"speech"}
    torch.testing.assert_close(older["speech"], newest["speech"])


@pytest.mark.parametrize(
    ("waveform", "message"),
    [
        (torch.zeros(16), "audio-encoder takes a waveform of shape [batch, samples], got [16]"),
        (torch.zeros(1, 0), "audio-encoder takes a waveform of shape [batch, samples], got [1, 0]"),
        (torch.zeros(1, 16).double(), "audio-encoder takes float32 samples, got float64"),
    ],
)
def test_other_inputs_are_refused_in_words(encode: Encoder, waveform: Tensor, message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        encode(waveform)

    assert str(refusal.value) == message


def test_built_trees_hold_exactly_these_files(trees: dict[str, Path]) -> None:
    shared = {"LICENSE.silero-vad", "audio_encoder.py", "safetensors_file.py", "silero_network.py"}
    shared |= {"silero_vad_16k.safetensors"}

    held = {version: {path.name for path in tree.iterdir()} for version, tree in trees.items()}

    assert held == {
        "1.4.0": shared,
        "2.0.4": shared | {"speech_embedding.py"},
        "2.0.5": shared | {"speech_embedding.py"},
    }


def test_a_wheel_with_another_digest_is_refused_and_nothing_of_it_is_used(tmp_path: Path) -> None:
    (tmp_path / RECIPE["WHEEL"]).write_bytes(b"not that wheel")

    done = run_build(SOURCE, tmp_path / "staging", SPM_EXAMPLES_CACHE=str(tmp_path))

    assert done.returncode == 1
    assert done.stderr == (
        "error: audio-encoder cannot be built: wheel `silero_vad-6.2.3-py3-none-any.whl` has sha256 "
        "c95248495a3b6d8280d16c4f801806eca5a5ac6a583ec8af871b24c8b89580d3, but "
        f"{RECIPE['WHEEL_SHA256']} is pinned; nothing of it was used\n"
    )
    assert not (tmp_path / "staging" / "silero_vad_16k.safetensors").exists()


def test_a_download_that_fails_is_told_apart_from_wrong_content(tmp_path: Path) -> None:
    done = run_build(SOURCE, tmp_path, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path), PIP_CONFIG_FILE="/dev/null")

    assert done.returncode == 75
    assert done.stderr.startswith("error: audio-encoder cannot be built: `pip download silero-vad==6.2.3` failed: ")
