"""`cumprod`: products of what stands before an element, it included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._scans import scan
from onnxsmith.exporter.translations._sizes import is_empty
from onnxsmith.exporter.translations.base import Sample, Translation


class Cumprod(Translation):
    """A scan, in PyTorch's order. Integers and bools multiply as int64."""

    targets = ("aten::cumprod",)

    def decompose(self, self_: Any, dim: int, *, dtype: torch.dtype | None = None) -> Any:
        if dtype is None:
            whole = not self_.dtype.is_floating_point and not self_.dtype.is_complex
            dtype = torch.int64 if whole else self_.dtype
        given = self_.to(dtype)
        if given.dim() == 0 or is_empty(given):
            return given.clone()
        if given.dtype.is_complex:
            return NotImplemented
        given = given.movedim(dim, 0)
        (found,) = scan(lambda so_far, one: (so_far * one,), [given.new_ones(given.shape[1:])], given)
        return found.movedim(0, dim)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(5, 3), 0), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(2, 5, 3), -2), dynamic={0: {0: "n", 2: "m"}})
        yield Sample((torch.randint(-3, 4, (4, 3), dtype=torch.int32), 1))
        yield Sample((torch.tensor([[True, False], [True, True]]), 1))
        yield Sample((torch.randn(4, 3), 1), {"dtype": torch.float64})
        yield Sample((torch.randn(()), 0))
        yield Sample((torch.randn(3, 0), 1))
        yield Sample((torch.randn(0, 3), 1))
