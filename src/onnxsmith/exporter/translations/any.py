"""`any` of a number, and over an axis that may be empty."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._truth import TruthOfNumber
from onnxsmith.exporter.translations.base import Sample


class AnyTrue(TruthOfNumber):
    """Whether any element is not zero.

    PyTorch's exporter takes the largest element, and that of no elements is the smallest integer, which is not zero. So
    over a dynamic axis, which may be empty, the elements that are not zero are counted.
    """

    targets = ("aten::any", "aten::any.dim", "aten::any.dims")

    def decompose(self, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        axes = range(x.dim()) if dim is None or dim == [] else [dim] if isinstance(dim, int) else dim
        if not x.dim() or not any(isinstance(x.shape[axis], torch.SymInt) for axis in axes):
            return super().decompose(x, dim, keepdim)
        count = (x != 0).to(torch.int64).sum(list(axes), keepdim=keepdim)
        return (count != 0).to(torch.uint8 if x.dtype == torch.uint8 else torch.bool)

    def samples(self) -> Iterator[Sample]:
        yield from super().samples()
        _, along, along_several = self.targets
        x = torch.randn(3, 4) > 0
        yield Sample((x,), dynamic={0: {0: "n"}})
        yield Sample((x, 0), {}, along, dynamic={0: {0: "n"}})
        yield Sample((x.float(), [0, 1], True), {}, along_several, dynamic={0: {0: "n", 1: "m"}})
