"""A spoken WAV through log-mel and audio-encoder in this process: speech where it was put, silence elsewhere."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from demo import speech
from tests.examples.plugin_trees import EXAMPLES, PluginContext, build, imported

WINDOW = 512
# The detector carries its memory some windows beyond the end of a sentence.
TAIL_WINDOWS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The facts that speech.py printed, and what the encoder made of its WAV."""

    samples: int
    speech: list[tuple[int, int]]
    probability: Tensor
    embedding: Tensor
    quiet_embedding: Tensor

    def inside(self) -> Tensor:
        """Return the probabilities of windows that lie in a sentence, its first and last window aside."""
        parts = [self.probability[start // WINDOW + 2 : end // WINDOW - 1] for start, end in self.speech]
        return torch.cat(parts)

    def outside(self) -> Tensor:
        """Return the probabilities of windows that no sentence touches, nor its tail."""
        quiet = torch.ones(len(self.probability), dtype=torch.bool)
        for start, end in self.speech:
            quiet[start // WINDOW : end // WINDOW + 1 + TAIL_WINDOWS] = False
        return self.probability[quiet]


@pytest.fixture(scope="module")
def heard(tmp_path_factory: pytest.TempPathFactory) -> Heard:
    folder = tmp_path_factory.mktemp("heard")
    wav = folder / "speech.wav"
    facts = make_wav(wav)
    samples, rate = speech.read_wav(wav.read_bytes())
    assert rate == 16_000
    tree = build(EXAMPLES / "audio-encoder", folder / "tree")
    with imported("audio_encoder", tree, EXAMPLES / "log-mel" / "plugin") as module:
        encode = module.factory(PluginContext(path=tree, name="audio-encoder", version="2.0.5"))
        outputs = encode(samples[None])
        quiet = encode(samples[None, : facts["speech"][0][0]])
    return Heard(
        samples=facts["samples"],
        speech=facts["speech"],
        probability=outputs["speech"][0],
        embedding=outputs["embedding"][0],
        quiet_embedding=quiet["embedding"][0],
    )


def make_wav(wav: Path) -> dict[str, Any]:
    """Run speech.py, or skip where no synthesiser can be had."""
    command = [sys.executable, speech.__file__, str(wav), "--json", str(wav.with_suffix(".json"))]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0 and "could not be had" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert json.loads(wav.with_suffix(".json").read_text()) == json.loads(done.stdout)
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def test_the_recording_is_two_sentences_between_pauses(heard: Heard) -> None:
    (first, first_end), (second, second_end) = heard.speech

    assert first == 19_200
    assert second - first_end == 19_200
    assert heard.samples == second_end + 19_200
    assert all(end - start > 16_000 for start, end in heard.speech)


def test_speech_is_found_where_it_was_put(heard: Heard) -> None:
    inside = heard.inside()

    assert float((inside > 0.5).float().mean()) >= 0.97
    assert float(inside.mean()) > 0.9


def test_silence_is_found_where_nothing_was_put(heard: Heard) -> None:
    outside = heard.outside()

    assert len(outside) > 90
    assert float(outside.max()) < 0.25
    assert float(outside.mean()) < 0.05


def test_the_embedding_tells_speech_from_silence(heard: Heard) -> None:
    assert heard.embedding.shape == (160,)
    # Mean log power of the voice's bands lies nats above that of the pause.
    assert float((heard.embedding[:40] - heard.quiet_embedding[:40]).mean()) > 3
