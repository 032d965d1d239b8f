"""`torch.istft` of a computed length. PyTorch takes only a plain number for it, which fixes the axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class InverseStft(Translation):
    """The inverse transform of each frame times the window, overlapping frames added, divided by the overlapping
    squares of the window (PyTorch, `torch.istft`, formula). The padding of the frames is cut off, and what lies behind
    them is filled with zeros up to the length."""

    targets = ()
    functions = (torch.istft, torch.Tensor.istft)

    def decompose(
        self,
        x: Any,
        n_fft: int,
        hop_length: int | None = None,
        win_length: int | None = None,
        window: Any = None,
        center: bool = True,
        normalized: bool = False,
        onesided: bool | None = None,
        length: Any = None,
        return_complex: bool = False,
    ) -> Any:
        is_other = return_complex or onesided is False or not isinstance(n_fft, int) or not x.is_complex()
        if not isinstance(length, torch.SymInt) or is_other:
            return NotImplemented
        hop = hop_length or n_fft // 4
        shape = _window(window, win_length or n_fft, n_fft, x)
        frames = torch.fft.irfft(x, n=n_fft, dim=-2, norm="ortho" if normalized else "backward")
        frames = frames if x.dim() == 3 else frames.unsqueeze(0)
        total = n_fft + hop * (x.shape[-1] - 1)
        signal = _overlapped(frames * shape[:, None], n_fft, hop, total)
        weight = _overlapped((shape * shape)[:, None].expand(1, n_fft, x.shape[-1]), n_fft, hop, total)
        begin = n_fft // 2 if center else 0
        beyond: Any = (0, length + n_fft)
        padded = torch.nn.functional.pad(signal, beyond)
        weights = torch.nn.functional.pad(weight, beyond, value=1.0)
        found = padded[:, begin : begin + length] / weights[:, begin : begin + length]
        return found if x.dim() == 3 else found.squeeze(0)

    def samples(self) -> Iterator[Sample]:
        x = torch.stft(torch.randn(2, 64), 16, 4, window=torch.hann_window(16), return_complex=True)
        yield Sample((x, 16), {"hop_length": 4, "window": torch.hann_window(16), "length": 60})
        yield Sample((x,), {"window": torch.hann_window(12)}, dynamic={0: {2: "n"}}, around=short)


def short(op: Any, x: torch.Tensor, window: torch.Tensor) -> Any:
    """A window shorter than a frame, and a length that is no multiple of the step."""
    return op(x, 16, hop_length=4, win_length=12, window=window, length=4 * x.shape[2] - 5)


def _window(window: Any, size: int, n_fft: int, x: torch.Tensor) -> torch.Tensor:
    """The window with zeros on both sides, as long as a frame."""
    given = torch.ones(size, dtype=x.real.dtype) if window is None else window
    left = (n_fft - size) // 2
    return torch.nn.functional.pad(given, (left, n_fft - size - left))


def _overlapped(frames: torch.Tensor, n_fft: int, hop: int, total: Any) -> torch.Tensor:
    """The sum of frames [batch, n_fft, count] that begin `hop` elements apart: [batch, total]."""
    folded = torch.nn.functional.fold(frames, (1, total), (1, n_fft), stride=(1, hop))
    return folded[:, 0, 0]
