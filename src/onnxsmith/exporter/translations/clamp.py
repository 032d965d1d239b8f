"""`clamp`: one bound or two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._bound import at_least, at_most, one_bound
from onnxsmith.exporter.translations.base import Sample, Translation


class Clamp(Translation):
    """Max or Min with one bound. Two bounds are left to PyTorch's exporter, unless they change the dtype."""

    targets = ("aten::clamp",)

    def decompose(self, x: torch.Tensor, min: Any = None, max: Any = None) -> Any:  # noqa: A002 — PyTorch's names
        if min is None or max is None:
            return x.clone() if min is max else at_least(x, min) if max is None else at_most(x, max)
        kept = torch.result_type(x, min) == x.dtype == torch.result_type(x, max)
        return NotImplemented if kept else at_most(at_least(x, min), max)

    def samples(self) -> Iterator[Sample]:
        yield from one_bound("aten::clamp", min=0.5)
        yield from one_bound("aten::clamp", max=0.5)
        yield Sample((torch.tensor([1, 5, -2]), 0.5, 2.5))
        yield Sample((torch.tensor([1, 5, -2]), 0, 2.5))
        yield Sample((torch.randn(3, 4), torch.randn(4), torch.randn(3, 1)), target="aten::clamp.Tensor")
        yield Sample((torch.randn(3, 4), None, torch.randn(4)), target="aten::clamp.Tensor")
        yield Sample((torch.tensor([1, 5]), torch.tensor([1.5, 2.5])), target="aten::clamp.Tensor")
