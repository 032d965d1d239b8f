"""`nonzero_static`: the indices of nonzero elements, in a given number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class NonzeroStatic(Translation):
    """Each place that is not zero is scattered to its number among them; those beyond `size` go to a row that is
    dropped, and rows that none went to are `fill_value`."""

    targets = ("aten::nonzero_static",)

    def decompose(self, x: Any, *, size: int, fill_value: int = -1) -> Any:
        if x.dim() == 0:
            return torch.zeros((size, 0), dtype=torch.int64)
        found = (x != 0).reshape(-1)
        number = found.to(torch.int64).cumsum(0) - 1
        row = torch.where(found.logical_and(number < size), number, torch.full((), size, dtype=torch.int64))
        columns = []
        for axis, length in enumerate(x.shape):
            sizes = [1] * x.dim()
            sizes[axis] = length
            place = torch.arange(length).reshape(sizes).expand(x.shape).reshape(-1)
            filled = torch.full((size + 1,), fill_value, dtype=torch.int64)
            columns.append(filled.scatter(0, row, place).narrow(0, 0, size))
        return torch.stack(columns, 1)

    def samples(self) -> Iterator[Sample]:
        x = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, float("nan")]])
        for size in (0, 2, 4, 9):
            yield Sample((x,), {"size": size, "fill_value": 7})
        yield Sample((torch.tensor([True, False]),), {"size": 3})
        yield Sample((torch.tensor(3.0),), {"size": 2})
        yield Sample((torch.zeros(0, 2),), {"size": 2})
        yield Sample((x,), {"size": 5}, dynamic={0: {0: "n"}})
