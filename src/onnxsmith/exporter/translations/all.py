"""`all` of a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class AllTrue(Translation):
    """Whether every element is not zero: of a number, whether it is not. The rest is PyTorch's exporter's."""

    targets = ("aten::all", "aten::all.dim", "aten::all.dims")

    def decompose(self, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        if x.dim():
            return NotImplemented
        return (x != 0).to(torch.uint8 if x.dtype == torch.uint8 else torch.bool)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.tensor(2.5),))
        yield Sample((torch.tensor(0), 0, True), {}, "aten::all.dim")
        yield Sample((torch.tensor(True), [0]), {}, "aten::all.dims")
        yield Sample((torch.tensor(3, dtype=torch.uint8), -1), {}, "aten::all.dim")
        yield Sample((torch.randn(3, 4) > 0, 1), {}, "aten::all.dim", dynamic={0: {0: "n"}})
