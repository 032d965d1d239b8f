"""`linalg.qr`: an orthogonal and an upper triangular factor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _householder
from onnxsmith.exporter.translations._sizes import smaller
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgQr(Translation):
    """Householder reflections, and their product where it is asked for."""

    targets = ("aten::linalg_qr",)

    def decompose(self, matrix: Any, mode: str = "reduced") -> Any:
        if matrix.is_complex():
            return NotImplemented
        factored, scales = _householder.factor(matrix)
        if mode == "complete":
            return _householder.orthogonal(factored, scales, matrix.shape[-2]), factored.triu()
        upper = factored[..., : smaller(matrix), :].triu()
        if mode == "r":
            return torch.zeros([0], dtype=matrix.dtype, device=matrix.device), upper
        return _householder.orthogonal(factored, scales, smaller(matrix)), upper

    def samples(self) -> Iterator[Sample]:
        for mode in ("reduced", "complete", "r"):
            for shape in ((3, 3), (5, 2), (2, 4, 7), (0, 3), (3, 0)):
                yield Sample((torch.randn(shape), mode))
        yield Sample((torch.randn(0, 3, 3),))
        yield Sample((torch.tensor([[1.0, 2.0], [0.0, -3.0]], dtype=torch.float64),))
        yield Sample((torch.randn(2, 7, 5),), dynamic={0: {0: "batch", 1: "m", 2: "n"}})
