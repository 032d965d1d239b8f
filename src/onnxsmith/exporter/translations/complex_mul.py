"""Products with a complex number of Python (`x + 1j * y`), which PyTorch's exporter does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexMul(Translation):
    """The real and the imaginary part, each by itself."""

    targets = ("aten::mul.Tensor", "aten::mul.Scalar")

    def decompose(self, self_: Any, other: Any) -> Any:
        if not isinstance(other, complex):
            return NotImplemented
        if self_.dtype.is_complex:
            real, imaginary = torch.view_as_real(self_.resolve_conj()).unbind(-1)
            parts = [real * other.real - imaginary * other.imag, real * other.imag + imaginary * other.real]
        else:
            x = self_ if self_.dtype.is_floating_point else self_.to(torch.get_default_dtype())
            parts = [x * other.real, x * other.imag]
        return torch.view_as_complex(torch.stack(parts, -1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 3), 1.5j))
        yield Sample((torch.randn(2, 3, dtype=torch.complex64), 2 - 1j))
        yield Sample((torch.tensor([1, 2, 3]), 0.5 + 1j))
