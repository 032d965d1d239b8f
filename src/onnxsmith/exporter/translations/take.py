"""`take`: reads elements at indices of the flat tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op


class Take(Translation):
    """ONNX's Gather from the flat tensor; negative indices count from its end in both."""

    targets = ("aten::take",)

    def decompose(self, x: Any, index: Any) -> Any:
        return onnx_op("Gather", x.reshape(-1), index, shape=index.shape, axis=0)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4), torch.tensor([[0, 5], [-1, 2]])))
        yield Sample((torch.randint(0, 9, (3, 4)), torch.tensor(-2)))
        yield Sample((torch.tensor(1.0), torch.tensor([0, 0])))
        yield Sample((torch.randn(3), torch.zeros(2, 0).long()))
        yield Sample((torch.randn(3, 4), torch.tensor([0, -1])), dynamic={0: {0: "n"}, 1: {0: "m"}})
