"""`unbind` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import before, numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexUnbind(Translation):
    """Each number's parts stay together."""

    targets = ("aten::unbind.int",)

    def decompose(self, self_: Any, dim: int = 0) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return [torch.view_as_complex(one.contiguous()) for one in parts(self_).unbind(before(dim))]

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4),))
        yield Sample((numbers(3, 4), -1))
