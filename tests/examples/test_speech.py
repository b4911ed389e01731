"""demo/speech.py: what it writes and says, and its resampler against sines."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from demo import speech

SCRIPT = Path(speech.__file__)


def run_script(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def sine(hertz: float, rate: int, seconds: float = 1.0) -> Tensor:
    return torch.sin(2 * math.pi * hertz * torch.arange(round(seconds * rate), dtype=torch.float64) / rate).float()


@pytest.mark.parametrize("hertz", [50.0, 440.0, 3000.0, 7000.0])
def test_resampling_keeps_a_sine_below_the_new_limit(hertz: float) -> None:
    resampled = speech.resample(sine(hertz, 22_050), 22_050, 16_000)

    assert len(resampled) == 16_000
    torch.testing.assert_close(resampled[200:-200], sine(hertz, 16_000)[200:-200], rtol=0, atol=2e-3)


def test_resampling_removes_a_sine_above_the_new_limit() -> None:
    resampled = speech.resample(sine(9000.0, 22_050), 22_050, 16_000)

    assert float(resampled[200:-200].abs().max()) < 2e-3


def test_resampling_to_the_same_rate_keeps_low_sounds_as_they_are() -> None:
    samples = sine(1000.0, 16_000)

    torch.testing.assert_close(speech.resample(samples, 16_000, 16_000)[200:-200], samples[200:-200], rtol=0, atol=2e-3)


def test_sentences_lie_where_they_are_said_to_lie_with_a_pause_around_each() -> None:
    samples, ranges = speech.arrange([torch.full((100,), 0.5), torch.full((50,), -0.1)])

    assert ranges == ((19_200, 19_300), (38_500, 38_550))
    assert len(samples) == 57_750
    assert float(samples[19_200:19_300].min()) > 0.59
    assert float(samples[38_500:38_550].max()) < -0.59
    assert float(torch.cat([samples[:19_200], samples[19_300:38_500], samples[38_550:]]).abs().max()) < 0.002


def test_what_is_inaudible_is_trimmed() -> None:
    samples = torch.tensor([0.0, 0.001, 0.5, 0.0, -1.0, 0.005, 0.0])

    assert torch.equal(speech.trim(samples), torch.tensor([0.5, 0.0, -1.0]))


def test_a_written_wav_reads_back(tmp_path: Path) -> None:
    samples = torch.tensor([0.0, 0.5, -0.5, 1.0, -1.0, 2.0])

    speech.write_wav(tmp_path / "a.wav", samples)
    again, rate = speech.read_wav((tmp_path / "a.wav").read_bytes())

    assert rate == 16_000
    torch.testing.assert_close(again, samples.clamp(-1, 1), rtol=0, atol=1e-4)


def test_the_command_in_path_is_asked_first(tmp_path: Path) -> None:
    tool = tmp_path / "espeak-ng"
    speech.write_wav(tmp_path / "voice.wav", sine(300.0, 16_000))
    tool.write_text(f'#!/bin/sh\nexec cat "{tmp_path}/voice.wav"\n')
    tool.chmod(0o755)

    done = run_script(str(tmp_path / "out.wav"), PATH=f"{tmp_path}:{os.environ['PATH']}")

    facts = json.loads(done.stdout)
    assert facts["synthesiser"] == "espeak-ng command"
    assert [end - start > 15_000 for start, end in facts["speech"]] == [True, True]


def test_without_a_synthesiser_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    done = run_script(
        str(tmp_path / "out.wav"),
        PATH=str(tmp_path),
        PIP_NO_INDEX="1",
        PIP_FIND_LINKS=str(tmp_path),
        PIP_CONFIG_FILE="/dev/null",
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(
        "error: there is no `espeak-ng` in PATH, and espeakng-loader==0.2.4 could not be had: "
    )
    assert not (tmp_path / "out.wav").exists()
