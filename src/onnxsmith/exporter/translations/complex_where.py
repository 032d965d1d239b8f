"""`where` of complex tensors and numbers, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexWhere(Translation):
    """Both parts by one condition."""

    targets = ("aten::where.ScalarOther", "aten::where.ScalarSelf")

    def decompose(self, condition: Any, self_: Any, other: Any) -> Any:
        tensors = [one for one in (self_, other) if isinstance(one, torch.Tensor)]
        dtypes = [one.dtype for one in tensors if one.is_complex()]
        if not dtypes:
            return NotImplemented
        chosen, instead = (parts(one, dtypes[0]) for one in (self_, other))
        return torch.view_as_complex(torch.where(condition.unsqueeze(-1), chosen, instead))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.rand(3, 4) > 0.5, numbers(3, 4), 0))
        yield Sample((torch.rand(3, 4) > 0.5, 1.5, numbers(3, 4)), target="aten::where.ScalarSelf")
