"""`fill` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexFill(Translation):
    """One number's parts at every place."""

    targets = ("aten::fill",)

    def decompose(self, self_: Any, value: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(parts(value, self_.dtype).expand(*self_.shape, 2).contiguous())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 2), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), torch.tensor(1.5)))
