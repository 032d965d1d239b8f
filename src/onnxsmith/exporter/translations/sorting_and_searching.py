"""Sorts, and operators that sort: medians, modes, runs of equal elements and searches in sorted rows.

The order is PyTorch's: stable, NaN greater than everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, onnx_ops

_SORTED_BY_TOPK = (torch.float16, torch.float32, torch.float64, torch.int32, torch.int64)


def order(x: torch.Tensor, dim: int, descending: bool = False) -> torch.Tensor:
    """Returns the indices that sort `x` along `dim`, int64. `x` has at least one axis.

    ONNX's TopK puts the lower index first among equal elements, so it is a stable sort, but it does not define NaN.
    Here a first sort takes NaN as infinity, and a second sort, by "is NaN", separates NaN from infinities.
    """
    if not x.dtype.is_floating_point:
        return _topk(x, dim, descending)
    nan = x.isnan()
    first = _topk(torch.where(nan, torch.full((), float("inf"), dtype=x.dtype), x), dim, descending)
    second = _topk(nan.to(torch.int32).gather(dim, first), dim, descending)
    return first.gather(dim, second)


def _topk(keys: torch.Tensor, dim: int, descending: bool) -> torch.Tensor:
    if keys.dtype not in _SORTED_BY_TOPK:
        keys = keys.to(torch.float32 if keys.dtype.is_floating_point else torch.int32)
    every = torch.full((1,), keys.shape[dim], dtype=torch.int64)
    outputs = [(keys.dtype, keys.shape), (torch.int64, keys.shape)]
    attributes = {"axis": dim % keys.dim(), "largest": int(descending), "sorted": 1}
    _, indices = onnx_ops("TopK", keys, every, outputs=outputs, **attributes)
    return indices


def itself(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the only element of a 0-d tensor, and its index."""
    return x.clone(), torch.zeros((), dtype=torch.int64)


def chosen(value: torch.Tensor, index: torch.Tensor, dim: int, keepdim: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the chosen elements and their indices, without the axis unless `keepdim`."""
    return (value, index) if keepdim else (value.squeeze(dim), index.squeeze(dim))


class Sort(Translation, targets=("aten::sort", "aten::sort.stable")):
    """Computes `sort` (also of `argsort` and `msort`), the sorted values and their indices, by TopK.

    It is always stable. PyTorch's sort is stable only on request, so the indices of equal elements may differ in long
    rows.
    """

    def decompose(self, x: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
        del stable
        if x.dim() == 0:
            return itself(x)
        indices = order(x, dim, descending)
        return x.gather(dim, indices), indices

    def samples(self) -> Iterator[Sample]:
        special = torch.tensor([[2.0, float("nan"), 1.0, float("inf"), float("nan"), -float("inf"), 2.0, -0.0]])
        for descending in (False, True):
            yield Sample((special, -1, descending))
            yield Sample((torch.randint(0, 3, (4, 5)), 0, descending))
            yield Sample((torch.randint(0, 3, (4, 5)).bool(), 1, descending))
            yield Sample((torch.randn(3, 5), 0, descending), dynamic={0: {0: "n"}})
        yield Sample((torch.randint(0, 255, (7,), dtype=torch.uint8),))
        yield Sample((torch.randn(3, 4, dtype=torch.float64),))
        yield Sample((torch.tensor(2.0),))
        yield Sample((torch.randn(3, 0),))
        yield Sample((torch.randint(0, 3, (9,)),), {"stable": True, "dim": 0, "descending": True}, "aten::sort.stable")


class Kthvalue(Translation, targets="aten::kthvalue"):
    """Computes `kthvalue`, the k-th smallest element, from the sorted row. NaN is the greatest; of equal elements the
    first is chosen."""

    def decompose(self, x: Any, k: Any, dim: int = -1, keepdim: bool = False) -> Any:
        if x.dim() == 0:
            return itself(x)
        found = order(x, dim).narrow(dim, k - 1, 1)
        return chosen(x.gather(dim, found), found, dim, keepdim)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(4, 6), 2))
        yield Sample((torch.randn(4, 6), 4, 0, True))
        yield Sample((torch.tensor([float("nan"), 1.0, float("inf")]), 2))
        yield Sample((torch.tensor(2.0), 1))
        yield Sample((torch.randn(4, 6), 2), dynamic={0: {0: "n", 1: "m"}})


class Median(Translation, targets=("aten::median", "aten::median.dim")):
    """Computes `median`, the lower of the two middle elements of the sorted row, or the first NaN if a row has any."""

    skips_nan: ClassVar[bool] = False

    def decompose(self, x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if dim is None:
            if x.numel() == 0:
                return torch.full((), float("nan"), dtype=x.dtype)
            return self.decompose(x.reshape(-1), 0)[0]
        if x.dim() == 0:
            return itself(x)
        indices = order(x, dim)
        length = x.shape[dim]
        place = torch.full((1,) * x.dim(), length - 1, dtype=torch.int64)
        if x.dtype.is_floating_point:
            # NaN is sorted last, so `numbers` is the position of the first NaN
            nans = x.isnan().sum(dim, keepdim=True)
            numbers = length - nans
            if self.skips_nan:
                place = torch.div(numbers - 1, 2, rounding_mode="floor").clamp(min=0)
            else:
                place = torch.where(nans > 0, numbers, torch.div(place, 2, rounding_mode="floor"))
        else:
            place = torch.div(place, 2, rounding_mode="floor")
        sizes = list(x.shape)
        sizes[dim] = 1
        found = indices.gather(dim, place.expand(sizes))
        return chosen(x.gather(dim, found), found, dim, keepdim)

    def samples(self) -> Iterator[Sample]:
        """Yields calls whose elements differ, because PyTorch does not define which of equal elements is returned."""
        whole, along = self.targets
        yield Sample((torch.randn(3, 4),), {}, whole)
        yield Sample((torch.randn(3, 5),), {}, whole, {0: {0: "n"}})
        yield Sample((torch.randint(0, 9, (7,)),), {}, whole)
        yield Sample((torch.tensor(3.0),), {}, whole)
        yield Sample((torch.randn(0),), {}, whole)
        yield Sample((torch.randn(3, 6), -1, True), {}, along)
        yield Sample((torch.randn(5, 3), 0), {}, along, {0: {0: "n", 1: "m"}})
        yield Sample((torch.randperm(12).reshape(3, 4), 1), {}, along)
        yield Sample((torch.tensor(3.0), 0), {}, along)
        nan = float("nan")
        if not self.skips_nan:
            yield Sample((torch.tensor([[1.0, nan, 0.0, nan], [4.0, 3.0, 2.0, 1.0]]), 1), {}, along)
            return
        x = torch.tensor([[1.0, nan, 0.0, nan], [4.0, 3.0, 2.0, 1.0], [nan] * 3 + [1.0]])
        yield Sample((x,), {}, whole)
        yield Sample((x, 1), {}, along)
        yield Sample((torch.full((3,), nan),), {}, whole)


class Nanmedian(Median, targets=("aten::nanmedian", "aten::nanmedian.dim")):
    """Computes `nanmedian`, the lower of the two middle elements among those that are not NaN; NaN if there are
    none."""

    skips_nan = True


class Mode(Translation, targets="aten::mode"):
    """Computes `mode`, the most frequent element, as the longest run of equal elements in the sorted row.

    The first of the longest runs gives the value, and the last element of that run the index, as in PyTorch for rows of
    up to 16 elements. For longer rows PyTorch's index depends on an unstable sort. The result for NaN is undefined, in
    PyTorch too.
    """

    def decompose(self, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
        if x.dim() == 0:
            return itself(x)
        indices = order(x, dim)
        values = x.gather(dim, indices)
        length = x.shape[dim]
        begins = (values.narrow(dim, 1, length - 1) != values.narrow(dim, 0, length - 1)).to(torch.int64)
        run = torch.cat([torch.zeros_like(indices.narrow(dim, 0, 1)), begins.cumsum(dim)], dim)
        lengths = torch.zeros_like(run).scatter_add(dim, run, torch.ones_like(run))
        longest = lengths.argmax(dim, keepdim=True)
        last = (run <= longest).sum(dim, keepdim=True) - 1
        found = indices.gather(dim, last)
        return chosen(values.gather(dim, last), found, dim, keepdim)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randint(0, 4, (5, 9)),))
        yield Sample((torch.randint(0, 4, (9, 5)).float(), 0, True))
        yield Sample((torch.randint(0, 2, (5, 9)).bool(), 1))
        yield Sample((torch.randn(3, 1), 1))
        yield Sample((torch.tensor(1.5),))
        yield Sample((torch.randint(0, 4, (5, 9)), 0), dynamic={0: {0: "n"}}, around=_mode_and_element)


def _mode_and_element(mode: Any, x: Any, dim: int) -> tuple[Any, Any]:
    """Returns the value, and the element at the index."""
    value, index = mode(x, dim)
    return value, x.gather(dim, index.unsqueeze(dim))


class UniqueConsecutive(Translation, targets="aten::unique_consecutive"):
    """Computes `unique_consecutive`, one element of each run of equal elements.

    A run begins where an element differs from the one before it; along an axis, where any element of a slice does. As
    in PyTorch, results that are not requested are empty without an axis, and computed with one.
    """

    def decompose(
        self, x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
    ) -> Any:
        row = x.reshape(-1) if dim is None else x.transpose(0, dim)
        length = row.shape[0]
        differs = row[1:] != row[:-1]
        if differs.dim() > 1:
            differs = differs.reshape([length - 1, -1]).any(1)
        begins = torch.cat([torch.ones((1,), dtype=torch.bool), differs])
        if length == 1:  # torch assumes that a computed size may be 2
            begins = torch.cat([begins, torch.zeros_like(begins)])
        places = begins.nonzero().squeeze(1)
        found = row.index_select(0, places)
        inverse = counts = torch.empty((0,), dtype=torch.int64)
        if return_inverse or dim is not None:
            inverse = begins[:length].to(torch.int64).cumsum(0) - 1
            inverse = inverse.reshape(x.shape) if dim is None else inverse
        if return_counts or dim is not None:
            ends = torch.cat([places, torch.full((1,), length, dtype=torch.int64)])
            counts = ends[1:] - ends[:-1]
        return found if dim is None else found.transpose(0, dim), inverse, counts

    def samples(self) -> Iterator[Sample]:
        for inverse in (False, True):
            for counts in (False, True):
                x = torch.randint(0, 2, (3, 4))
                yield Sample((x, inverse, counts))
                yield Sample((x.float(), inverse, counts, 1))
                yield Sample((x[:, :1].bool(), inverse, counts, 0))
        yield Sample((torch.tensor(1.0), True, True))
        yield Sample((torch.randint(0, 2, (5, 2)), True, True, 0), dynamic={0: {0: "n"}})
        yield Sample((torch.randint(0, 2, (5, 2)), True, True), dynamic={0: {0: "n"}})


class Searchsorted(Translation, targets=("aten::searchsorted.Tensor", "aten::searchsorted.Scalar")):
    """Computes `searchsorted`: the number of elements before a value in a sorted row (`right`: or equal to it); all for
    NaN.

    Repeats the steps of PyTorch's binary search, so that unsorted rows give the same result. A row of dynamic length is
    compared as a whole.
    """

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
    """Returns positions, int64, in the shape of `x`. `row` has one axis, or the same axes as `x` but for the last."""
    common = torch.promote_types(row.dtype, x.dtype)
    row, x = row.to(common), x.to(common)

    def is_before(element: Any, value: Any) -> Any:
        # not `<=` and `<`: comparisons with NaN are false, and all elements come before NaN
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


class Bucketize(Translation, targets=("aten::bucketize.Tensor", "aten::bucketize.Scalar")):
    """Computes `bucketize`, the bucket of each value, as `searchsorted` with swapped arguments."""

    def decompose(self, x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
        x = x if isinstance(x, torch.Tensor) else torch.full((), x, dtype=boundaries.dtype)
        found = search(boundaries, x, right)
        return found.to(torch.int32) if out_int32 else found

    def samples(self) -> Iterator[Sample]:
        boundaries = torch.tensor([1.0, 3.0, 3.0, 5.0])
        for right in (False, True):
            yield Sample((torch.tensor([[0.0, 1.0, 3.0], [4.0, 5.0, 9.0]]), boundaries), {"right": right})
            yield Sample((torch.randint(0, 9, (3, 4)), boundaries.long()), {"right": right, "out_int32": True})
        yield Sample((torch.randint(0, 9, (4,)), boundaries))
        yield Sample((3.0, boundaries), {}, "aten::bucketize.Scalar")
        yield Sample((torch.tensor(2.0), torch.arange(100.0)))
        yield Sample((torch.randn(3, 4), torch.linspace(-2, 2, 50)), dynamic={0: {0: "n"}})
