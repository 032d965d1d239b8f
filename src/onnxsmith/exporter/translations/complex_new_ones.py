"""`new_ones` of complex numbers, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.complex_full import filled


class ComplexNewOnes(Translation):
    """Each part by itself."""

    targets = ("aten::new_ones",)

    def decompose(self, self_: Any, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or self_.dtype
        return filled(size, 1, given) if given.is_complex else NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [2, 3]))
        yield Sample((torch.randn(2), [2, 3]))
