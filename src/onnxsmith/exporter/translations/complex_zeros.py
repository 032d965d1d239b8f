"""`zeros` of complex numbers, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.complex_full import filled


class ComplexZeros(Translation):
    """Each part by itself."""

    targets = ("aten::zeros",)

    def decompose(self, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Any:
        return filled(size, 0, dtype) if dtype is not None and dtype.is_complex else NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample(([2, 3],), {"dtype": torch.complex64})
        yield Sample(([2, 3],))
