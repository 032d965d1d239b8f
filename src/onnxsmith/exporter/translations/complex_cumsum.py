"""`cumsum` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import before, numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexCumsum(Translation):
    """Each part by itself."""

    targets = ("aten::cumsum",)

    def decompose(self, self_: Any, dim: int, *, dtype: Any = None) -> Any:
        if not self_.dtype.is_complex or dtype not in (None, self_.dtype):
            return NotImplemented
        return torch.view_as_complex(parts(self_).cumsum(before(dim)))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 0), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), -1))
