"""`searchsorted` and `bucketize`: where values belong in a sorted row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation

_COMPARED_AT_ONCE = 16


class Searchsorted(Translation):
    """The number of elements that come before the value (`right`: or are equal to it); all do when it is NaN.

    A short row is compared as a whole. In a longer one the number is found bit by bit, the greatest first, as a binary
    search does.
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
        def in_order(op: Any, row: torch.Tensor, x: Any, **options: Any) -> Any:
            return op(row.sort(-1).values, x, **options)

        def sorted_by(op: Any, row: torch.Tensor, x: Any) -> Any:
            return op(row, x, sorter=row.argsort(-1))

        for length in (5, 40):
            row, x = torch.randint(0, 20, (3, length)), torch.randint(-1, 22, (3, 7))
            for right in (False, True):
                yield Sample((row, x), {"right": right}, around=in_order)
                yield Sample((row.float(), x.float()), {"right": right, "out_int32": True}, around=in_order)
                yield Sample((row[0].double(), x.double()), {"right": right}, around=in_order)
            yield Sample((row[0].float(), 3.0), {"side": "right"}, "aten::searchsorted.Scalar", around=in_order)
            yield Sample((row[0].float(), torch.tensor([float("nan"), float("inf"), -float("inf")])), around=in_order)
        row = torch.randn(2, 6)
        yield Sample((row, torch.randn(2, 3)), around=sorted_by)
        yield Sample((row[0], torch.tensor(0.1)), around=in_order)
        yield Sample((torch.randn(0), torch.randn(3)), around=in_order)
        open_axes = {0: {0: "n", 1: "k"}, 1: {0: "n", 1: "m"}}
        yield Sample((row, torch.randn(2, 3)), dynamic=open_axes, around=in_order)
        yield Sample((torch.randn(40), torch.randn(2, 3)), dynamic={1: {0: "n", 1: "m"}}, around=in_order)


def search(row: Any, x: Any, right: bool) -> Any:
    """int64, of the shape of `x`. `row` has one axis, or all but the last in common with `x`."""
    common = torch.promote_types(row.dtype, x.dtype)
    row, x = row.to(common), x.to(common)

    def is_before(element: Any, value: Any) -> Any:
        return (element > value).logical_not() if right else (element >= value).logical_not()

    length = row.shape[-1]
    if not isinstance(length, int) or length <= _COMPARED_AT_ONCE:
        return is_before(row.unsqueeze(-2) if row.dim() > 1 else row, x.unsqueeze(-1)).sum(-1)
    found = torch.zeros_like(x, dtype=torch.int64)
    step = 1 << (length.bit_length() - 1)
    while step:
        probe = found + step
        at = (probe - 1).clamp(max=length - 1)
        element = row.gather(-1, at) if row.dim() > 1 else row.index_select(0, at.reshape(-1)).reshape(at.shape)
        found = torch.where((probe <= length).logical_and(is_before(element, x)), probe, found)
        step >>= 1
    return found
