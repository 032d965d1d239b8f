"""`median` and `nanmedian`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._order import order
from onnxsmith.exporter.translations.base import Sample, Translation


class Median(Translation):
    """The lower of the two middle elements. A NaN in a row is its median, the first one."""

    targets = ("aten::median", "aten::median.dim")

    def decompose(self, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        return middle(x, dim, keepdim, skip_nan=False)

    def samples(self) -> Iterator[Sample]:
        yield from calls("aten::median", "aten::median.dim")
        yield Sample(
            (torch.tensor([[1.0, float("nan"), 0.0, float("nan")], [4.0, 3.0, 2.0, 1.0]]), 1), {}, "aten::median.dim"
        )


def middle(x: Any, dim: int | None, keepdim: bool, skip_nan: bool) -> Any:
    """Value and index along `dim`; the value of all elements when that is None."""
    if dim is None:
        if x.numel() == 0:
            return torch.full((), float("nan"), dtype=x.dtype)
        return middle(x.reshape(-1), 0, False, skip_nan)[0]
    if x.dim() == 0:
        return x.clone(), torch.zeros((), dtype=torch.int64)
    indices = order(x, dim)
    length = x.shape[dim]
    place = torch.full((1,) * x.dim(), length - 1, dtype=torch.int64)
    if x.dtype.is_floating_point:
        nans = x.isnan().sum(dim, keepdim=True)
        numbers = length - nans
        if skip_nan:
            place = torch.div(numbers - 1, 2, rounding_mode="floor").clamp(min=0)
        else:
            place = torch.where(nans > 0, numbers, torch.div(place, 2, rounding_mode="floor"))
    else:
        place = torch.div(place, 2, rounding_mode="floor")
    sizes = list(x.shape)
    sizes[dim] = 1
    found = indices.gather(dim, place.expand(sizes))
    value = x.gather(dim, found)
    return (value, found) if keepdim else (value.squeeze(dim), found.squeeze(dim))


def calls(whole: str, along: str) -> Iterator[Sample]:
    """The samples of both operators. Their elements differ, because PyTorch does not define which of equal elements is
    returned."""
    yield Sample((torch.randn(3, 4),), {}, whole)
    yield Sample((torch.randn(3, 5),), {}, whole, {0: {0: "n"}})
    yield Sample((torch.randint(0, 9, (7,)),), {}, whole)
    yield Sample((torch.tensor(3.0),), {}, whole)
    yield Sample((torch.randn(0),), {}, whole)
    yield Sample((torch.randn(3, 6), -1, True), {}, along)
    yield Sample((torch.randn(5, 3), 0), {}, along, {0: {0: "n", 1: "m"}})
    yield Sample((torch.randperm(12).reshape(3, 4), 1), {}, along)
    yield Sample((torch.tensor(3.0), 0), {}, along)
