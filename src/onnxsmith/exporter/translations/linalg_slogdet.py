"""`linalg.slogdet`: sign and logarithm of a determinant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _lu
from onnxsmith.exporter.translations.base import Sample, Translation


class LinalgSlogdet(Translation):
    """The sum of the logarithms of the pivots, which is finite where their product is too large or small for a number.
    Every swap of two rows turns the sign. The determinant of a matrix without elements is 1."""

    targets = ("aten::_linalg_slogdet",)

    def decompose(self, matrix: Any) -> Any:
        if matrix.is_complex():
            return NotImplemented
        factors, pivots, _ = _lu.factor(matrix)
        diagonal = factors.diagonal(0, -2, -1)
        places = torch.arange(1, matrix.shape[-1] + 1, device=matrix.device)
        swaps = (pivots != places).sum(-1)
        sign = diagonal.sign().prod(-1) * (1 - 2 * (swaps % 2)).to(matrix.dtype)
        return sign, diagonal.abs().log().sum(-1), factors, pivots

    def samples(self) -> Iterator[Sample]:
        def around(op: Any, matrix: torch.Tensor) -> Any:
            return op(matrix)[:2]

        for shape in ((0, 0), (1, 1), (2, 3, 3), (4, 6, 6)):
            yield Sample((torch.randn(shape),), around=around)
        yield Sample((torch.ones(3, 3, dtype=torch.float64),), around=around)
        yield Sample((torch.randn(5, 6, 6),), dynamic={0: {0: "batch"}}, around=around)
