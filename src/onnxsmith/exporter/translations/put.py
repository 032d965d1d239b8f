"""`put`: writes elements at indices of the flat tensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Put(Translation):
    """A scatter into the flat tensor; negative indices count from its end."""

    targets = ("aten::put",)

    def decompose(self, x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
        if index.numel() == 0:
            return x.clone()
        flat, index, source = x.reshape(-1), index.reshape(-1), source.reshape(-1)
        index = torch.where(index < 0, index + flat.shape[0], index)
        done = flat.scatter_add(0, index, source) if accumulate else flat.scatter(0, index, source)
        return done.reshape(x.shape)

    def samples(self) -> Iterator[Sample]:
        for accumulate in (False, True):
            yield Sample((torch.randn(3, 4), torch.tensor([[0, 5], [-1, 2]]), torch.randn(2, 2), accumulate))
            yield Sample((torch.randn(3), torch.tensor(-2), torch.tensor(1.0), accumulate))
            yield Sample((torch.tensor(1.0), torch.tensor([0]), torch.tensor([5.0]), accumulate))
            arguments = (torch.randint(0, 9, (3, 4)), torch.tensor([0, 5, 7]), torch.tensor([1, 2, 3]), accumulate)
            yield Sample(arguments, dynamic={0: {0: "n"}})
        yield Sample((torch.randn(3), torch.zeros(0).long(), torch.zeros(0)))
