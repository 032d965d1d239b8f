"""torchaudio: front ends, recognisers, separation, vocoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torchaudio
from torchaudio import models, transforms

from packages.case import BATCH, Case, lively

_SAMPLES = {**BATCH, "samples": (4000, 3200, 8000)}
_FRAMES = {**BATCH, "frames": (40, 30, 64)}


def cases() -> list[Case]:
    """Waves and frames with batch and length."""
    mel = {"n_fft": 256, "n_mels": 20}
    return [
        _wave("mel-spectrogram", lambda: transforms.MelSpectrogram(8000, **mel)),
        _wave(
            "log-mel",
            lambda: torch.nn.Sequential(transforms.MelSpectrogram(8000, **mel), transforms.AmplitudeToDB(top_db=80)),
        ),
        _wave("mfcc", lambda: transforms.MFCC(8000, n_mfcc=13, melkwargs={"n_fft": 256, "n_mels": 23})),
        _wave("lfcc", lambda: transforms.LFCC(8000, n_filter=20, n_lfcc=13, speckwargs={"n_fft": 256})),
        _wave("resample", lambda: transforms.Resample(8000, 6000)),
        _wave("fbank-classifier", _Keywords),
        Case(
            "griffin-lim",
            lambda: transforms.GriffinLim(128, n_iter=4, rand_init=False),
            lambda batch, frames: (torch.rand(batch, 65, frames),),
            ({0: "batch", 2: "frames"},),
            _FRAMES,
        ),
        Case(
            "conv-tasnet",
            lambda: models.ConvTasNet(
                num_sources=2,
                enc_kernel_size=8,
                enc_num_feats=16,
                msk_kernel_size=3,
                msk_num_feats=8,
                msk_num_hidden_feats=16,
                msk_num_layers=2,
                msk_num_stacks=1,
            ),
            lambda batch, samples: (torch.randn(batch, 1, samples),),
            ({0: "batch", 2: "samples"},),
            _SAMPLES,
        ),
        Case(
            "conformer",
            lambda: models.Conformer(20, 4, 32, 1, 7),
            _lengths(20),
            ({0: "batch", 1: "frames"}, {0: "batch"}),
            _FRAMES,
        ),
        Case(
            "emformer",
            lambda: models.Emformer(20, 4, 32, 1, segment_length=4, right_context_length=2),
            _lengths(20),
            ({0: "batch", 1: "frames"}, {0: "batch"}),
            {**BATCH, "frames": (42, 30, 62)},
        ),
        Case(
            "deepspeech",
            lambda: models.DeepSpeech(20, 32, 11),
            lambda batch, frames: (torch.randn(batch, 1, frames, 20),),
            ({0: "batch", 2: "frames"},),
            _FRAMES,
        ),
        Case(
            "wav2letter",
            lambda: lively(models.Wav2Letter(11, "waveform", 1)),
            lambda batch, samples: (torch.randn(batch, 1, samples),),
            ({0: "batch", 2: "samples"},),
            {**BATCH, "samples": (8000, 7200, 9600)},
        ),
        Case(
            "wav2vec2",
            _wav2vec2,
            lambda batch, samples: (torch.randn(batch, samples),),
            ({0: "batch", 1: "samples"},),
            _SAMPLES,
        ),
        Case(
            "wavernn",
            lambda: models.WaveRNN([2, 2], 8, 4, n_res_block=1, n_rnn=16, n_fc=16, n_freq=10, n_hidden=8, n_output=8),
            lambda batch: (torch.randn(batch, 1, 24), torch.randn(batch, 1, 10, 10)),
            ({0: "batch"},) * 2,
            BATCH,
        ),
        Case(
            "hdemucs",
            lambda: models.HDemucs(["a", "b"], audio_channels=1, channels=4, depth=5, nfft=2048),
            lambda batch, samples: (torch.randn(batch, 1, samples),),
            ({0: "batch", 2: "samples"},),
            {**BATCH, "samples": (8192, 10240, 16384)},
        ),
        Case(
            "tacotron2",
            _Synthesiser,
            lambda batch, length: (torch.randint(0, 20, (batch, length)), torch.full((batch,), length)),
            ({0: "batch", 1: "length"}, {0: "batch"}),
            {**BATCH, "length": (12, 9, 20)},
        ),
    ]


def _wave(name: str, build: Callable[[], torch.nn.Module]) -> Case:
    return Case(
        name, build, lambda batch, samples: (torch.randn(batch, samples),), ({0: "batch", 1: "samples"},), _SAMPLES
    )


def _lengths(features: int) -> Callable[..., Any]:
    def inputs(batch: int, frames: int) -> Any:
        lengths = torch.full((batch,), frames - 2)
        lengths[0] = frames
        return torch.randn(batch, frames, features), lengths

    return inputs


def _wav2vec2() -> torch.nn.Module:
    return models.wav2vec2_model(
        "layer_norm", [(16, 10, 5), (16, 8, 4)], False, 32, 0.0, 16, 2, 2, 4, 0.0, 37, 0.0, 0.0, False, 0.0, None
    )


class _Keywords(torch.nn.Module):
    """A keyword spotter: log mel energies, convolutions, a mean over time."""

    def __init__(self) -> None:
        super().__init__()
        self.mel = transforms.MelSpectrogram(8000, n_fft=256, hop_length=80, n_mels=20)
        self.body = torch.nn.Sequential(
            torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1)
        )
        self.head = torch.nn.Linear(8, 12)

    def forward(self, wave: torch.Tensor) -> torch.Tensor:
        energies = torchaudio.functional.amplitude_to_DB(self.mel(wave), 10.0, 1e-10, 0.0)
        found: torch.Tensor = self.head(self.body(energies[:, None]).flatten(1))
        return found


class _Synthesiser(torch.nn.Module):
    """The encoder of Tacotron 2, which is exported apart from its decoder."""

    def __init__(self) -> None:
        super().__init__()
        model = models.Tacotron2(
            n_symbol=20, symbol_embedding_dim=16, encoder_embedding_dim=16, encoder_n_convolution=1, n_mels=8
        )
        self.embedding, self.encoder = model.embedding, model.encoder

    def forward(self, tokens: torch.Tensor, lengths: torch.Tensor) -> Any:
        return self.encoder(self.embedding(tokens).transpose(1, 2), lengths)
