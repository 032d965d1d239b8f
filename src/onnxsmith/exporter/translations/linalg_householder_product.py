"""`linalg.householder_product`: the product of reflections as a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _householder
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgHouseholderProduct(Translation):
    """Its first columns, as many as the matrix of reflections has."""

    targets = ("aten::linalg_householder_product", "aten::orgqr")

    def decompose(self, factored: Any, scales: Any) -> Any:
        if factored.is_complex():
            return NotImplemented
        return _householder.orthogonal(factored, scales, factored.shape[-1])

    def samples(self) -> Iterator[Sample]:
        for shape, count in (((3, 3), 3), ((6, 3), 2), ((2, 7, 6), 6), ((3, 0), 0), ((0, 5, 4), 4), ((5, 4), 0)):
            yield Sample((torch.randn(shape), torch.rand(*shape[:-2], count)))
        double = torch.randn(5, 5, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
        yield Sample(double, target="aten::orgqr")
        yield Sample((torch.randn(2, 6, 5), torch.rand(2, 5)), dynamic={0: {0: "batch"}, 1: {0: "batch"}})
