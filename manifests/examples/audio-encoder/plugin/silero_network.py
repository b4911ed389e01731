"""The Silero speech detector for 16 kHz in plain torch, whole clips at once. Does not stream and does not resample."""

from pathlib import Path

import safetensors_file
import torch
from torch import Tensor, nn
from torch.nn import functional

CHUNK = 512
CONTEXT = 64
WEIGHTS = "silero_vad_16k.safetensors"
_FREQUENCIES = 129
_HIDDEN = 128


class SileroNetwork(nn.Module):
    """Waveform [B, N] -> probability of speech [B, T], one for each 32 ms, T = ceil(N / 512)."""

    def __init__(self) -> None:
        super().__init__()
        self.stft_conv = nn.Conv1d(1, 2 * _FREQUENCIES, kernel_size=256, stride=128, bias=False)
        self.conv1 = nn.Conv1d(_FREQUENCIES, 128, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(128, 64, kernel_size=3, stride=2, padding=1)
        self.conv3 = nn.Conv1d(64, 64, kernel_size=3, stride=2, padding=1)
        self.conv4 = nn.Conv1d(64, _HIDDEN, kernel_size=3, padding=1)
        self.lstm_cell = nn.LSTMCell(_HIDDEN, _HIDDEN)
        self.final_conv = nn.Conv1d(_HIDDEN, 1, kernel_size=1)

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the probability of speech in each window."""
        windows = split_windows(waveform)
        features = self._features(windows.flatten(0, 1))
        hidden = self._recur(features.reshape(*windows.shape[:2], _HIDDEN))
        return torch.sigmoid(self.final_conv(hidden.relu())).squeeze(1)

    def _features(self, windows: Tensor) -> Tensor:
        """Describe windows [M, 576] by features [M, 128]; windows do not see each other here."""
        padded = functional.pad(windows, (0, CONTEXT), mode="reflect")
        real, imaginary = self.stft_conv(padded[:, None, :]).split(_FREQUENCIES, dim=1)
        x: Tensor = (real.square() + imaginary.square()).sqrt()
        for convolution in (self.conv1, self.conv2, self.conv3, self.conv4):
            x = convolution(x).relu()
        return x.squeeze(2)

    def _recur(self, features: Tensor) -> Tensor:
        """Carry the memory along time: [B, T, 128] -> hidden states [B, 128, T]."""
        hidden = features.new_zeros(features.shape[0], _HIDDEN)
        cell = torch.zeros_like(hidden)
        states = []
        for step in features.unbind(dim=1):
            hidden, cell = self.lstm_cell(step, (hidden, cell))
            states.append(hidden)
        return torch.stack(states, dim=2)


def split_windows(waveform: Tensor) -> Tensor:
    """Cut [B, N] into windows [B, T, 576]: 512 new samples after the 64 before them, zeros outside the clip."""
    if waveform.dim() != 2 or waveform.shape[1] == 0:
        raise ValueError(f"audio-encoder takes a waveform of shape [batch, samples], got {list(waveform.shape)}")
    if waveform.dtype != torch.float32:
        raise ValueError(f"audio-encoder takes float32 samples, got {str(waveform.dtype).removeprefix('torch.')}")
    padded = functional.pad(waveform, (CONTEXT, -waveform.shape[1] % CHUNK))
    return padded.unfold(1, CONTEXT + CHUNK, CHUNK)


def load(weights: Path, device: torch.device) -> SileroNetwork:
    """Make the network with its pretrained weights on a device."""
    network = SileroNetwork()
    network.load_state_dict(safetensors_file.read(weights))
    return network.to(device).eval()
