"""`mode`: the most frequent element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._order import order
from onnxsmith.exporter.translations.base import Sample, Translation


class Mode(Translation):
    """Equal elements are runs of the sorted row. The first of the longest runs holds the value, and the last of that
    run the index, as in PyTorch for rows of up to 16 elements: which index longer ones give is left to a sort that
    keeps no order. What it makes of NaN is not defined, in PyTorch neither."""

    targets = ("aten::mode",)

    def decompose(self, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
        if x.dim() == 0:
            return x.clone(), torch.zeros((), dtype=torch.int64)
        indices = order(x, dim)
        values = x.gather(dim, indices)
        length = x.shape[dim]
        begins = (values.narrow(dim, 1, length - 1) != values.narrow(dim, 0, length - 1)).to(torch.int64)
        run = torch.cat([torch.zeros_like(indices.narrow(dim, 0, 1)), begins.cumsum(dim)], dim)
        lengths = torch.zeros_like(run).scatter_add(dim, run, torch.ones_like(run))
        longest = lengths.argmax(dim, keepdim=True)
        last = (run <= longest).sum(dim, keepdim=True) - 1
        found, value = indices.gather(dim, last), values.gather(dim, last)
        return (value, found) if keepdim else (value.squeeze(dim), found.squeeze(dim))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randint(0, 4, (5, 9)),))
        yield Sample((torch.randint(0, 4, (9, 5)).float(), 0, True))
        yield Sample((torch.randint(0, 2, (5, 9)).bool(), 1))
        yield Sample((torch.randn(3, 1), 1))
        yield Sample((torch.tensor(1.5),))
        yield Sample((torch.randint(0, 4, (5, 9)), 0), dynamic={0: {0: "n"}}, around=_found)


def _found(mode: Any, x: Any, dim: int) -> tuple[Any, Any]:
    """The value, and what stands at the index."""
    value, index = mode(x, dim)
    return value, x.gather(dim, index.unsqueeze(dim))
