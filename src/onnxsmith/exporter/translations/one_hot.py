"""`one_hot` without a given number of classes: the largest value determines it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional

from onnxsmith.base.seams.torch.tensors import check
from onnxsmith.exporter.translations.base import Sample, Translation


class OneHot(Translation):
    """Where the number of classes is left open, it is a size that follows from the values; PyTorch refuses negative
    numbers, of which the graph makes rows of zeros. Otherwise it is PyTorch's exporter's."""

    targets = ()
    functions = (functional.one_hot,)

    def decompose(self, x: Any, num_classes: int = -1) -> Any:
        if num_classes != -1:
            return NotImplemented
        count = x.max().item() + 1
        check(count >= 1)
        return (x.unsqueeze(-1) == torch.arange(count)).to(torch.int64)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.tensor([0, 3, 1, 1]),))
        yield Sample((torch.tensor([[0, 2], [1, 1]]),))
        yield Sample((torch.tensor(4),))
        yield Sample((torch.tensor([0, 3, 1]), 5))
        yield Sample((torch.tensor([0, 3, 1, 1]),), dynamic={0: {0: "n"}})
