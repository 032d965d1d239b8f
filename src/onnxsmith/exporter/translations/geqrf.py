"""`geqrf`: QR factors in one matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _householder
from onnxsmith.exporter.translations.base import Sample, Translation


class Geqrf(Translation):
    """R and its reflections, in LAPACK's form. PyTorch 2.13 cannot trace the operator with dynamic sizes."""

    targets = ("aten::geqrf",)

    def decompose(self, matrix: Any) -> Any:
        return NotImplemented if matrix.is_complex() else _householder.factor(matrix)

    def samples(self) -> Iterator[Sample]:
        for shape in ((3, 3), (6, 3), (2, 5, 8), (0, 3), (3, 0), (1, 4)):
            yield Sample((torch.randn(shape),))
        yield Sample((torch.randn(2, 6, 6, dtype=torch.float64),))
