"""Inverse Fourier transforms whose length is known only when the model runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class FftToReal(Translation, targets="aten::_fft_c2r"):
    """Computes `_fft_c2r`, the inverse Fourier transform to real numbers, for a length that is computed at run time.

    Completes the spectrum (its second half is the first one mirrored and conjugated), transforms it and takes the real
    part. ONNX's DFT has a one-sided inverse, but shape inference (onnx 1.23) gives its result the length of the half
    spectrum if the length is computed; onnxruntime then stores the result in a buffer of that size, and fails.
    """

    def decompose(self, self_: Any, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Any:
        if isinstance(last_dim_size, int):
            return NotImplemented
        return whole(self_, dim, normalization, last_dim_size)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 5, dtype=torch.complex64), [1], 2, 8))
        yield Sample((torch.randn(2, 4, 4, dtype=torch.complex64), [1, 2], 1, 7))
        for around in (even, odd):
            yield Sample((numbers(2, 3, 5),), dynamic={0: {2: "n"}}, around=around)


def even(op: Any, half: torch.Tensor) -> Any:
    """Transforms both axes. The last result axis has the even length 2·(frequencies - 1)."""
    return op(half, [1, 2], 2, 2 * half.shape[2] - 2)


def odd(op: Any, half: torch.Tensor) -> Any:
    """Transforms the last axis alone. The result has the odd length 2·frequencies - 1."""
    return op(half, [2], 1, 2 * half.shape[2] - 1)


def whole(half: torch.Tensor, dim: Sequence[int], normalization: int, length: Any) -> torch.Tensor:
    """Computes the real inverse transform along `dim`.

    The last of these axes holds the first `length // 2 + 1` elements of a spectrum. The others are the conjugates of
    these in reverse order, which holds only after the other axes have been transformed.
    """
    if len(dim) > 1:
        half = _complex_fft()(half, list(dim[:-1]), normalization, False)
    parts = torch.view_as_real(half)
    axis = dim[-1] % half.dim()
    mirrored = parts.narrow(axis, 1, length - length // 2 - 1).flip(axis)
    conjugated = torch.stack([mirrored[..., 0], -mirrored[..., 1]], -1)
    spectrum = torch.view_as_complex(torch.cat([parts, conjugated], axis))
    found: torch.Tensor = _complex_fft()(spectrum, [axis], normalization, False).real
    return found


def _complex_fft() -> Any:
    """Returns the operator below `torch.fft.fft`. Its schema is public, its name is not: without it, only this
    translation fails."""
    return getattr(torch.ops.aten, "_fft_c2c")  # noqa: B009


class InverseStft(Translation, functions=(torch.istft, torch.Tensor.istft)):
    """Computes `torch.istft` of a computed length. PyTorch takes only an int for this length, which fixes the axis.

    The formula is PyTorch's (`torch.istft`): the inverse transform of each frame times the window, overlapping frames
    added, divided by the added squares of the window. The padding of the frames is cut off; the elements after the
    frames are 0 up to the length.
    """

    def decompose(
        self, x: Any, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Any = None,
        center: bool = True, normalized: bool = False, onesided: bool | None = None, length: Any = None,
        return_complex: bool = False,
    ) -> Any:  # fmt: skip
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
        # 1, because the signal after the frames is 0 and 0 / 0 would be NaN
        weights = torch.nn.functional.pad(weight, beyond, value=1.0)
        found = padded[:, begin : begin + length] / weights[:, begin : begin + length]
        return found if x.dim() == 3 else found.squeeze(0)

    def samples(self) -> Iterator[Sample]:
        x = torch.stft(torch.randn(2, 64), 16, 4, window=torch.hann_window(16), return_complex=True)
        yield Sample((x, 16), {"hop_length": 4, "window": torch.hann_window(16), "length": 60})
        yield Sample((x,), {"window": torch.hann_window(12)}, dynamic={0: {2: "n"}}, around=short)


def short(op: Any, x: torch.Tensor, window: torch.Tensor) -> Any:
    """Calls with a window shorter than a frame, and a length that is not a multiple of the step."""
    return op(x, 16, hop_length=4, win_length=12, window=window, length=4 * x.shape[2] - 5)


def _window(window: Any, size: int, n_fft: int, x: torch.Tensor) -> torch.Tensor:
    """Returns the window with zeros on both sides, as long as a frame."""
    given = torch.ones(size, dtype=x.real.dtype) if window is None else window
    left = (n_fft - size) // 2
    return torch.nn.functional.pad(given, (left, n_fft - size - left))


def _overlapped(frames: torch.Tensor, n_fft: int, hop: int, total: Any) -> torch.Tensor:
    """Adds frames [batch, n_fft, count] that begin `hop` elements apart: [batch, total]."""
    folded = torch.nn.functional.fold(frames, (1, total), (1, n_fft), stride=(1, hop))
    return folded[:, 0, 0]
