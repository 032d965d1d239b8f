"""Products of complex matrices and vectors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, product
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexMatmul(Translation):
    """By four products of parts."""

    targets = ("aten::mm", "aten::bmm", "aten::mv", "aten::dot")

    def decompose(self, self_: Any, other: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return product(torch.matmul, self_, other)

    def samples(self) -> Iterator[Sample]:
        mm, bmm, mv, dot = self.targets
        yield Sample((numbers(3, 4), numbers(4, 2)), {}, mm, {0: {0: "n"}})
        yield Sample((numbers(2, 3, 4), numbers(2, 4, 5)), {}, bmm, {0: {0: "n"}, 1: {0: "n"}})
        yield Sample((numbers(3, 4), numbers(4)), {}, mv, {0: {0: "n"}})
        yield Sample((numbers(4), numbers(4)), {}, dot)
