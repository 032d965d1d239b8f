"""`scatter_reduce`, and `scatter` with a reduction."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._scattering import scattered
from onnxsmith.exporter.translations.base import Sample, Translation

_NAMES = {"add": "sum", "multiply": "prod"}


class ScatterReduce(Translation):
    """ONNX's ScatterElements with a reduction; a mean is a sum over a count."""

    targets = ("aten::scatter_reduce.two", "aten::scatter.reduce", "aten::scatter.value_reduce")

    def decompose(
        self, x: Any, dim: int, index: Any, source: Any, reduce: str = "", *, include_self: bool = True, **_: Any
    ) -> Any:
        if index.numel() == 0:
            return x.clone()
        if not isinstance(source, torch.Tensor):
            source = torch.full(index.shape, source, dtype=x.dtype)
        return scattered(x, dim, index, source, _NAMES.get(reduce, reduce), include_self)

    def samples(self) -> Iterator[Sample]:
        index = torch.tensor([[0, 1, 1], [2, 0, 0]])
        for how in ("sum", "prod", "mean", "amax", "amin"):
            for own in (True, False):
                yield Sample((torch.randn(3, 5), 0, index, torch.randn(4, 3), how), {"include_self": own})
                integers = (torch.randint(-9, 9, (2, 4)), 1, index, torch.randint(-9, 9, (2, 3)), how)
                yield Sample(integers, {"include_self": own})
                inf = torch.tensor([-float("inf"), float("inf"), float("nan")])
                yield Sample((torch.zeros(5), 0, torch.tensor([1, 2, 3]), inf, how), {"include_self": own})
            yield Sample((torch.tensor(2.0), 0, torch.tensor(0), torch.tensor(3.0), how))
            axes = {0: {0: "n"}, 1: {0: "m"}, 2: {0: "m"}}
            yield Sample((torch.randn(5, 3), 0, index % 3, torch.randn(2, 3), how), dynamic=axes)
        yield Sample((torch.randn(3, 5), 0, torch.zeros(0, 3).long(), torch.randn(4, 3), "sum"))
        for how in ("add", "multiply"):
            yield Sample((torch.randn(3, 5), -2, index, torch.randn(4, 3)), {"reduce": how}, "aten::scatter.reduce")
            yield Sample((torch.randn(3, 5), 0, index, 1.5), {"reduce": how}, "aten::scatter.value_reduce")
