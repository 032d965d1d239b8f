"""`empty_like` of complex numbers, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.complex_full import filled


class ComplexEmptyLike(Translation):
    """Zeros: nothing reads them before they are written."""

    targets = ("aten::empty_like",)

    def decompose(self, self_: Any, *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or self_.dtype
        return filled(self_.shape, 0, given) if given.is_complex else NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4),), around=written)


def written(op: Any, x: torch.Tensor) -> Any:
    """A number at every place: what was there before is not defined."""
    return op(x) * 0 + x
