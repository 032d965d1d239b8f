"""`searchsorted` and `bucketize`: where values belong in a sorted row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Searchsorted(Translation):
    """The number of elements that come before the value (`right`: or are equal to it); all do when it is NaN.

    Repeats PyTorch's binary search step by step, so that the result is the same for a row that is not sorted. A row of
    dynamic length is compared as a whole.
    """

    targets = ("aten::searchsorted.Tensor", "aten::searchsorted.Scalar")

    def decompose(
        self, row: Any, x: Any, *, out_int32: bool = False, right: bool = False, side: Any = None, sorter: Any = None
    ) -> Any:
        scalar = not isinstance(x, torch.Tensor)
        x = torch.full((), x, dtype=row.dtype) if scalar else x
        right = right if side is None else side == "right"
        row = row if sorter is None else row.gather(-1, sorter)
        found = search(row, x, right)
        return found.to(torch.int32) if out_int32 else found

    def samples(self) -> Iterator[Sample]:
        for length in (5, 40):
            row = torch.randint(0, 20, (3, length)).sort(-1)[0]
            x = torch.randint(-1, 22, (3, 7))
            for right in (False, True):
                yield Sample((row, x), {"right": right})
                yield Sample((row.float(), x.float()), {"right": right, "out_int32": True})
                yield Sample((row[0].double(), x.double()), {"right": right})
            yield Sample((row[0].float(), 3.0), {"side": "right"}, "aten::searchsorted.Scalar")
            yield Sample((row[0].float(), torch.tensor([float("nan"), float("inf"), -float("inf")])))
        row = torch.randn(2, 6)
        yield Sample((row, torch.randn(2, 3)), {"sorter": row.argsort(-1)})
        yield Sample((row[0].sort()[0], torch.tensor(0.1)))
        yield Sample((torch.randn(0), torch.randn(3)))
        yield Sample((row.sort(-1)[0], torch.randn(2, 3)), dynamic={0: {0: "n"}, 1: {0: "n", 1: "m"}})
        yield Sample((torch.randn(40).sort()[0], torch.randn(2, 3)), dynamic={1: {0: "n", 1: "m"}})


def search(row: Any, x: Any, right: bool) -> Any:
    """int64, of the shape of `x`. `row` has one axis, or all but the last in common with `x`."""
    common = torch.promote_types(row.dtype, x.dtype)
    row, x = row.to(common), x.to(common)

    def is_before(element: Any, value: Any) -> Any:
        return (element > value).logical_not() if right else (element >= value).logical_not()

    length = row.shape[-1]
    if not isinstance(length, int):
        return is_before(row.unsqueeze(-2) if row.dim() > 1 else row, x.unsqueeze(-1)).sum(-1)
    low = torch.zeros_like(x, dtype=torch.int64)
    high = low + length
    for _ in range(length.bit_length()):
        middle = torch.div(low + high, 2, rounding_mode="floor")
        at = middle.clamp(max=length - 1)
        element = row.gather(-1, at) if row.dim() > 1 else row.index_select(0, at.reshape(-1)).reshape(at.shape)
        before = is_before(element, x).logical_and(low < high)
        low, high = torch.where(before, middle + 1, low), torch.where(before, high, middle)
    return low
