"""`zeros_like` for complex numbers, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.complex_full import filled


class ComplexZerosLike(Translation):
    """Each part by itself."""

    targets = ("aten::zeros_like",)

    def decompose(self, self_: Any, *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or self_.dtype
        if not given.is_complex:
            return NotImplemented
        return filled(self_.shape, 0, given)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 3, dtype=torch.complex64),), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(4),))
        yield Sample((torch.randn(2, 3),), {"dtype": torch.complex64})
