"""Silero's voice activity detector on a telephone call that pyannote.audio ships, cut up and mixed with noise.

The package says who speaks when. A frame is speech if somebody speaks in the greater part of it.
"""

from __future__ import annotations

import shutil
import sysconfig
import wave
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

NAME = "speech"
BETTER = "higher"
RATE = 16000
FRAME, CONTEXT = 512, 64
"""Audio samples of a frame, and those before it that the network gets too."""
FRAMES = 128
"""Of a run; about four seconds."""
THRESHOLD = 0.5
TEST_SECONDS, CALIBRATION_SECONDS = (13.0, 30.0), (6.5, 13.0)
"""The parts of the call."""
TEST, CALIBRATION = 120, 60
NOISES = (0.0, 0.5, 1.0)
"""Powers of the amplitude by which the noise falls with its frequency: white, half way, pink squared."""


def prepare(folder: Path) -> Path:
    """Copy the model of whole sequences out of the package."""
    path = folder / "speech.onnx"
    if not path.exists():
        shutil.copy(_root() / "silero_vad" / "data" / "silero_vad_16k_sequence.onnx", path)
    return path


def _root() -> Path:
    return Path(sysconfig.get_path("purelib"))


@cache
def _call() -> tuple[np.ndarray, np.ndarray]:
    """The call, float32 in -1..1, and whether somebody speaks, for each of its audio samples."""
    folder = _root() / "pyannote" / "audio" / "sample"
    with wave.open(str(folder / "sample.wav")) as file:
        assert file.getframerate() == RATE
        audio = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 2**15
    speaks = np.zeros(len(audio), bool)
    for line in (folder / "sample.rttm").read_text(encoding="utf-8").splitlines():
        start, duration = map(float, line.split()[3:5])
        speaks[int(start * RATE) : int((start + duration) * RATE)] = True
    return audio, speaks


def _noise(count: int, draw: np.random.Generator) -> np.ndarray:
    """Noise of a mean square of 1."""
    spectrum = np.fft.rfft(draw.normal(size=count))
    frequency = np.maximum(np.arange(len(spectrum)), count * 50 / RATE)
    noise = np.fft.irfft(spectrum / frequency ** draw.choice(NOISES), count)
    return noise / np.sqrt(np.mean(noise**2))


def _items(seconds: tuple[float, float], seed: int, count: int) -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    """Pieces of the call, each at a random place of four seconds of noise, which is 3 to 25 dB below it."""
    draw = np.random.default_rng(seed)
    call, speaks = _call()
    total = FRAMES * FRAME
    for _ in range(count):
        length = int(draw.uniform(1.0, 2.5) * RATE)
        start = int(draw.uniform(seconds[0] * RATE, min(seconds[1] * RATE, len(call)) - length))
        place = int(draw.integers(total - length))
        audio, label = np.zeros(total), np.zeros(total, bool)
        piece = call[start : start + length] * draw.uniform(0.3, 1.5)
        audio[place : place + length] = piece
        label[place : place + length] = speaks[start : start + length]
        audio += _noise(total, draw) * np.sqrt(np.mean(piece**2)) * 10 ** (-draw.uniform(3, 25) / 20)
        padded = np.concatenate([np.zeros(CONTEXT), np.clip(audio, -1, 1)]).astype(np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(padded, CONTEXT + FRAME)[::FRAME]
        state = np.zeros((1, 1, 128), np.float32)
        feeds = {"input": np.ascontiguousarray(frames), "h": state, "c": state}
        yield feeds, label.reshape(FRAMES, FRAME).mean(1) > 0.5


def samples() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    """120 recordings, and which of their 128 frames are speech."""
    return _items(TEST_SECONDS, 0, TEST)


def calibration() -> Iterator[tuple[dict[str, np.ndarray], np.ndarray]]:
    """60 recordings of another part of the call."""
    return _items(CALIBRATION_SECONDS, 1, CALIBRATION)


def decode(outputs: dict[str, np.ndarray]) -> np.ndarray:
    """Which frames are speech: bool [128]."""
    return outputs["speech_probs"].reshape(-1) > THRESHOLD


def frame_accuracy(predictions: list[np.ndarray], labels: list[np.ndarray]) -> float:
    """The share of frames that are right."""
    return float(np.mean(np.concatenate(predictions) == np.concatenate(labels)))


METRIC = frame_accuracy
