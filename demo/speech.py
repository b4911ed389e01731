"""Makes a WAV of synthesised speech between silences and says where the speech is. Detects nothing itself.

Usage: python demo/speech.py OUT.wav [--json FILE]

The voice is espeak-ng: the command where PATH has one, else the library in the pinned wheel `espeakng-loader`,
fetched by pip into a temporary folder. espeak-ng is under the GPL: it is run as a tool, nothing of it is kept.
"""

import argparse
import array
import ctypes
import io
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import wave
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

SAMPLE_RATE = 16_000
SENTENCES = ("The registry signs what it serves.", "A plugin that cannot be verified is never loaded.")
PAUSE_SECONDS = 1.2
PEAK = 0.6
# -70 dB of noise, so that "silence" is what a microphone would give, not a run of exact zeros.
NOISE = 3e-4
AUDIBLE = 0.01
LOADER_REQUIREMENT = "espeakng-loader==0.2.4"
# The wheels of 0.2.4 whose digests are known: manylinux x86_64.
LOADER_SHA256 = ("08721baf27d13d461f6be6eed9a65277e70d68234ff484fd8b9897b222cdcb6d",)
_MAX_ESPEAK_PATH = 150
_AUDIO_OUTPUT_SYNCHRONOUS = 2
_INITIALIZE_DONT_EXIT = 0x8000
_CHARS_UTF8 = 1
_SYNTH_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)

Voice = Callable[[str], tuple[Tensor, int]]


class SpeechUnavailable(Exception):
    """No synthesiser can be had, or it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """What was written: sample ranges [start, end) of speech, in order."""

    sample_rate: int
    samples: int
    speech: tuple[tuple[int, int], ...]
    sentences: tuple[str, ...]
    synthesiser: str


def main(arguments: list[str] | None = None) -> int:
    """Write the WAV, and the facts as JSON to stdout."""
    parser = argparse.ArgumentParser(description="Make a 16 kHz WAV of speech between silences.")
    parser.add_argument("wav", type=Path, metavar="OUT.wav")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the facts to this file too")
    options = parser.parse_args(arguments)
    try:
        recording = record(options.wav)
    except SpeechUnavailable as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    facts = json.dumps(asdict(recording))
    if options.json is not None:
        options.json.write_text(facts + "\n")
    print(facts)
    return 0


def record(path: Path, sentences: tuple[str, ...] = SENTENCES) -> Recording:
    """Write a WAV of the sentences, with a pause before, between and after."""
    with tempfile.TemporaryDirectory() as tools:
        synthesiser, voice = find_voice(Path(tools))
        spoken = [resample(*voice(sentence), SAMPLE_RATE) for sentence in sentences]
    samples, speech = arrange([trim(sentence) for sentence in spoken])
    write_wav(path, samples)
    return Recording(
        sample_rate=SAMPLE_RATE, samples=len(samples), speech=speech, sentences=sentences, synthesiser=synthesiser
    )


def arrange(spoken: list[Tensor]) -> tuple[Tensor, tuple[tuple[int, int], ...]]:
    """Join sentences with pauses around each, over faint noise; return the samples and where speech lies."""
    pause = torch.zeros(round(PAUSE_SECONDS * SAMPLE_RATE))
    parts, ranges, position = [pause], [], len(pause)
    for sentence in spoken:
        parts += [sentence * (PEAK / sentence.abs().max()), pause]
        ranges.append((position, position + len(sentence)))
        position += len(sentence) + len(pause)
    samples = torch.cat(parts)
    noise = torch.randn(len(samples), generator=torch.Generator().manual_seed(1))
    return samples + NOISE * noise, tuple(ranges)


def trim(samples: Tensor) -> Tensor:
    """Drop what is inaudible before and after the sentence."""
    audible = (samples.abs() > AUDIBLE * samples.abs().max()).nonzero().flatten()
    return samples[int(audible[0]) : int(audible[-1]) + 1]


def resample(samples: Tensor, source_rate: int, target_rate: int) -> Tensor:
    """Change the sample rate by a windowed sinc, one filter for each phase of the output."""
    common = math.gcd(source_rate, target_rate)
    up, down = target_rate // common, source_rate // common
    cutoff = 0.95 * min(1.0, up / down)
    half = math.ceil(48 / cutoff)
    taps = torch.arange(-half, half + down, dtype=torch.float64)
    offset = torch.arange(up, dtype=torch.float64)[:, None] * down / up - taps
    window = torch.cos(offset / half * math.pi / 2).square() * (offset.abs() < half)
    kernels = (cutoff * torch.sinc(cutoff * offset) * window).float()
    padded = functional.pad(samples, (half, half + down))
    phases = functional.conv1d(padded[None, None], kernels[:, None], stride=down)[0]
    return phases.T.flatten()[: math.ceil(len(samples) * up / down)]


def write_wav(path: Path, samples: Tensor) -> None:
    """Write mono 16-bit samples, given in [-1, 1]."""
    integers = (samples.clamp(-1, 1) * 32767).round().to(torch.int16)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(_little_endian(array.array("h", integers.tolist())).tobytes())


def read_wav(data: bytes) -> tuple[Tensor, int]:
    """Return mono 16-bit samples in [-1, 1] and their rate."""
    with wave.open(io.BytesIO(data)) as file:
        if (file.getnchannels(), file.getsampwidth()) != (1, 2):
            raise SpeechUnavailable(f"expected mono 16-bit sound, got {file.getparams()}")
        # espeak-ng writes to a pipe and cannot know the length, so it states too many frames.
        integers = _little_endian(array.array("h", file.readframes(len(data) // 2)))
        return torch.tensor(integers, dtype=torch.float32) / 32768, file.getframerate()


def _little_endian(samples: "array.array[int]") -> "array.array[int]":
    if sys.byteorder == "big":
        samples.byteswap()
    return samples


def find_voice(tools: Path) -> tuple[str, Voice]:
    """Return a synthesiser's name and voice: the command in PATH, else the pinned library, put into `tools`."""
    command = shutil.which("espeak-ng")
    if command is not None:
        return "espeak-ng command", lambda text: speak_by_command(command, text)
    install_library(tools)
    return f"library of {LOADER_REQUIREMENT}", lambda text: speak_by_library(tools / "espeakng_loader", text)


def speak_by_command(command: str, text: str) -> tuple[Tensor, int]:
    """Return samples and rate, spoken by the espeak-ng command."""
    done = subprocess.run([command, "-v", "en-us", "--stdout", text], capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        raise SpeechUnavailable(f"`{command}` failed: {done.stderr.decode(errors='replace').strip()}")
    return read_wav(done.stdout)


def install_library(folder: Path) -> None:
    """Put the pinned wheel into the folder; pip checks its digest."""
    wish = folder / "requirements.txt"
    wish.write_text(" ".join([LOADER_REQUIREMENT, *(f"--hash=sha256:{digest}" for digest in LOADER_SHA256)]) + "\n")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    command += ["--only-binary", ":all:", "--require-hashes", "--target", str(folder), "-r", str(wish)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    if done.returncode != 0:
        raise SpeechUnavailable(
            f"there is no `espeak-ng` in PATH, and {LOADER_REQUIREMENT} could not be had: {done.stderr.strip()}"
        )


def speak_by_library(package: Path, text: str) -> tuple[Tensor, int]:
    """Return samples and rate, spoken by the library that the package carries."""
    data = os.fsencode(package / "espeak-ng-data")
    if len(data) > _MAX_ESPEAK_PATH:
        raise SpeechUnavailable(f"espeak-ng cannot take a data path of {len(data)} bytes: set TMPDIR to a shorter one")
    library = ctypes.CDLL(str(package / "libespeak-ng.so"))
    rate = library.espeak_Initialize(_AUDIO_OUTPUT_SYNCHRONOUS, 0, data, _INITIALIZE_DONT_EXIT)
    if rate <= 0:
        raise SpeechUnavailable(f"espeak-ng did not start (status {rate})")
    try:
        return _synthesise(library, text.encode()), rate
    finally:
        library.espeak_Terminate()


def _synthesise(library: ctypes.CDLL, text: bytes) -> Tensor:
    samples = array.array("h")

    def collect(wave_pointer: "ctypes._Pointer[ctypes.c_short]", count: int, events: int) -> int:
        # A null pointer comes with no samples, at the end of the text.
        if count > 0:
            samples.extend(wave_pointer[:count])
        return 0

    callback = _SYNTH_CALLBACK(collect)
    library.espeak_SetSynthCallback(callback)
    statuses = [
        library.espeak_SetVoiceByName(b"en-us"),
        library.espeak_Synth(text, ctypes.c_size_t(len(text) + 1), 0, 0, 0, _CHARS_UTF8, None, None),
        library.espeak_Synchronize(),
    ]
    if any(statuses) or not samples:
        raise SpeechUnavailable(f"espeak-ng failed: statuses {statuses}, {len(samples)} samples")
    return torch.tensor(samples, dtype=torch.float32) / 32768


if __name__ == "__main__":
    sys.exit(main())
