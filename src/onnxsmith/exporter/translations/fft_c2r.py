"""`_fft_c2r`: the inverse Fourier transform to real numbers, of a length that is not known before the model runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class FftToReal(Translation):
    """The whole spectrum, of which the second half is the first one mirrored and conjugated, is transformed, and its
    real part taken. ONNX's DFT has a one-sided inverse, but shape inference (onnx 1.23) gives its result the length of
    the half spectrum where the length is computed; onnxruntime then stores the result in a buffer of that size, and
    fails."""

    targets = ("aten::_fft_c2r",)

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
    """Both axes; the last has twice as many elements as there are frequencies between the first and the last."""
    return op(half, [1, 2], 2, 2 * half.shape[2] - 2)


def odd(op: Any, half: torch.Tensor) -> Any:
    """The last axis by itself, and one element more."""
    return op(half, [2], 1, 2 * half.shape[2] - 1)


def whole(half: torch.Tensor, dim: Sequence[int], normalization: int, length: Any) -> torch.Tensor:
    """The real inverse transform along `dim`. The last of these axes holds the first `length // 2 + 1` elements of a
    spectrum; what follows is the conjugate of these in reverse order, once the other axes have been transformed."""
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
    """The operator below `torch.fft.fft`. Its schema is public, its name is not: without it, this translation alone
    fails."""
    return getattr(torch.ops.aten, "_fft_c2c")  # noqa: B009
