"""`ormqr`: the orthogonal factor of a QR factorisation times a matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations import _householder
from onnxsmith.exporter.translations.base import Sample, Translation


class Ormqr(Translation):
    """The reflections one after the other. From the right they are applied to the transpose."""

    targets = ("aten::ormqr",)

    def decompose(self, factored: Any, scales: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
        if factored.is_complex():
            return NotImplemented
        if left:
            return _householder.applied(factored, scales, other, transposed=transpose)
        return _householder.applied(factored, scales, other.mT, transposed=not transpose).mT

    def samples(self) -> Iterator[Sample]:
        for left, transpose in ((True, True), (True, False), (False, True), (False, False)):
            for batch in ((), (2,)):
                other = torch.randn(*batch, *((6, 4) if left else (4, 6)))
                yield Sample((torch.randn(*batch, 6, 3), torch.rand(*batch, 3), other, left, transpose))
        double = [torch.randn(7, 5), torch.rand(5), torch.randn(7, 7)]
        yield Sample(tuple(one.double() for one in double))
