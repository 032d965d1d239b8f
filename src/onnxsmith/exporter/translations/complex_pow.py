"""Powers of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import joined, numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexPow(Translation):
    """Products for small whole numbers; otherwise the power of the absolute value and the multiple of the angle
    (DLMF 4.2.26)."""

    targets = ("aten::pow.Tensor_Scalar",)

    def decompose(self, self_: Any, exponent: Any) -> Any:
        if not self_.dtype.is_complex or isinstance(exponent, complex):
            return NotImplemented
        if exponent == int(exponent) and 0 < abs(exponent) <= 8:  # a choice
            found = self_
            for _ in range(abs(int(exponent)) - 1):
                found = found * self_
            return found if exponent > 0 else found.reciprocal()
        real, imaginary = torch.view_as_real(self_.resolve_conj()).unbind(-1)
        size, angle = self_.abs() ** exponent, torch.atan2(imaginary, real) * exponent
        return joined(size * angle.cos(), size * angle.sin())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 2), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), 3))
        yield Sample((numbers(3, 4), -1))
        yield Sample((numbers(3, 4), 0.5))
        yield Sample((numbers(3, 4), 2.5))
