"""Scatters elements along an axis and reduces them with the elements of the target: by index, segment or bag."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op
from onnxsmith.exporter.translations.sorting_and_searching import search

_ONNX = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def scattered(
    x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, how: str, include_self: bool = True
) -> torch.Tensor:
    """Reduces each element of `source` into the element of `x` that `index` names along `dim`.

    `how` is sum, prod, mean, amax or amin. Without `include_self`, elements that are reduced into lose their own value
    first. `source` may be larger than `index`. A 0-d tensor counts as one with one element.
    """
    if x.dim() == 0:
        return scattered(x.reshape(1), 0, index.reshape(1), source.reshape(1), how, include_self).reshape(())
    index, source = (t.reshape(1) if t.dim() == 0 else t for t in (index, source))
    if source.shape != index.shape:
        for axis, size in enumerate(index.shape):
            source = source.narrow(axis, 0, size)
    if x.dtype == torch.bool:
        return scattered(x.int(), dim, index, source.int(), how, include_self).bool()
    if how == "mean":
        return _mean(x, dim, index, source, include_self)
    start = x if include_self else x.scatter(dim, index, _identity(how, x.dtype))
    found = _reduced(start, dim, index, source, _ONNX[how])
    if how in ("sum", "prod") or not x.dtype.is_floating_point:
        return found
    nan = _reduced(start.isnan().int(), dim, index, source.isnan().int(), "max").bool()  # ONNX's max may lose a NaN
    return torch.where(nan, torch.full((), float("nan"), dtype=x.dtype), found)


def _mean(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, include_self: bool) -> torch.Tensor:
    total = scattered(x, dim, index, source, "sum", include_self)
    counted = torch.ones_like(x) if include_self else torch.zeros_like(x)
    count = _reduced(counted, dim, index, torch.ones_like(source), "add")
    count = count if include_self else count.clamp(min=1)
    return total / count if x.dtype.is_floating_point else torch.div(total, count, rounding_mode="floor")


def _reduced(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor, reduction: str) -> torch.Tensor:
    return onnx_op("ScatterElements", x, index.long(), source, axis=dim % x.dim(), reduction=reduction)


def _identity(how: str, dtype: torch.dtype) -> float:
    """Returns the neutral element of the reduction."""
    if how in ("sum", "prod"):
        return 0 if how == "sum" else 1
    sign = -1 if how == "amax" else 1
    if dtype.is_floating_point:
        return sign * float("inf")
    info = torch.iinfo(dtype)
    return info.min if sign < 0 else info.max


_NAMES = {"add": "sum", "multiply": "prod"}


class ScatterReduce(Translation):
    """Computes `scatter_reduce`, and `scatter` with a reduction, by ScatterElements. A mean is a sum divided by a
    count."""

    targets = ("aten::scatter_reduce.two", "aten::scatter.reduce", "aten::scatter.value_reduce")

    def decompose(
        self, x: Any, dim: int, index: Any, source: Any, reduce: str = "", *, include_self: bool = True, **_: Any
    ) -> Any:
        if index.numel() == 0:
            return x.clone()
        if not isinstance(source, torch.Tensor):
            source = torch.full(index.shape, source, dtype=x.dtype)
        return scattered(x, dim, index, source, _NAMES.get(reduce, reduce), include_self)

    def samples(self) -> Iterator[Sample]:
        index = torch.tensor([[0, 1, 1], [2, 0, 0]])
        for how in ("sum", "prod", "mean", "amax", "amin"):
            for own in (True, False):
                yield Sample((torch.randn(3, 5), 0, index, torch.randn(4, 3), how), {"include_self": own})
                integers = (torch.randint(-9, 9, (2, 4)), 1, index, torch.randint(-9, 9, (2, 3)), how)
                yield Sample(integers, {"include_self": own})
                inf = torch.tensor([-float("inf"), float("inf"), float("nan")])
                yield Sample((torch.zeros(5), 0, torch.tensor([1, 2, 3]), inf, how), {"include_self": own})
            yield Sample((torch.tensor(2.0), 0, torch.tensor(0), torch.tensor(3.0), how))
            axes = {0: {0: "n"}, 1: {0: "m"}, 2: {0: "m"}}
            yield Sample((torch.randn(5, 3), 0, index % 3, torch.randn(2, 3), how), dynamic=axes)
        yield Sample((torch.randn(3, 5), 0, torch.zeros(0, 3).long(), torch.randn(4, 3), "sum"))
        for how in ("add", "multiply"):
            yield Sample((torch.randn(3, 5), -2, index, torch.randn(4, 3)), {"reduce": how}, "aten::scatter.reduce")
            yield Sample((torch.randn(3, 5), 0, index, 1.5), {"reduce": how}, "aten::scatter.value_reduce")


class IndexReduce(Translation, targets="aten::index_reduce"):
    """Computes `index_reduce`, slices reduced into the slices that an index names, as `scatter_reduce` with repeated
    indices."""

    def decompose(self, x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True) -> Any:
        if index.numel() == 0:
            return x.clone()
        if x.dim() == 0:
            return scattered(x, 0, index, source, reduce, include_self)
        sizes = [1] * x.dim()
        sizes[dim] = -1
        return scattered(x, dim, index.reshape(sizes).expand(source.shape), source, reduce, include_self)

    def samples(self) -> Iterator[Sample]:
        index = torch.tensor([0, 4, 2, 0])
        for how in ("prod", "mean", "amax", "amin"):
            for own in (True, False):
                yield Sample((torch.randn(5, 3), 0, index, torch.randn(4, 3), how), {"include_self": own})
                integers = (torch.randint(-9, 9, (3, 5)), -1, index, torch.randint(-9, 9, (3, 4)), how)
                yield Sample(integers, {"include_self": own})
            yield Sample((torch.tensor(2.0), 0, torch.tensor(0), torch.tensor(3.0), how))
            yield Sample((torch.randn(3, 5), 1, index, torch.randn(3, 4), how), dynamic={0: {0: "n"}, 2: {0: "n"}})


_HOW = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}
_BEGIN = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -float("inf"), "min": float("inf")}


class SegmentReduce(Translation, targets="aten::segment_reduce"):
    """Computes `segment_reduce`, segments of an axis each reduced to one element, by a scatter.

    An element belongs to the segment whose number is the count of segments that end at or before it. An empty segment
    is `initial`, or the reduction of no elements: NaN for the mean.
    """

    def decompose(
        self, x: Any, reduce: str, *, lengths: Any = None, indices: Any = None, offsets: Any = None, axis: int = 0,
        unsafe: bool = False, initial: Any = None,
    ) -> Any:  # fmt: skip
        if indices is not None or (lengths is None) == (offsets is None):
            return NotImplemented
        del unsafe
        axis %= x.dim()
        if lengths is None:
            ends = offsets.narrow(-1, 1, offsets.shape[-1] - 1)
            lengths = offsets.diff(dim=-1)
        else:
            ends = lengths.cumsum(-1)
        places = torch.arange(x.shape[axis])
        segment = (ends.unsqueeze(-2) <= places.unsqueeze(-1)).sum(-1)
        beyond = x.dim() - axis - 1
        segment = segment.reshape([*segment.shape, *(1,) * beyond]).expand(x.shape)
        sizes = [*x.shape[:axis], lengths.shape[-1], *x.shape[axis + 1 :]]
        begun = torch.full(sizes, _BEGIN[reduce] if initial is None else initial, dtype=x.dtype)
        found = scattered(begun, axis, segment, x, _HOW[reduce]) if x.numel() else begun
        if reduce != "mean":
            return found
        count = lengths.reshape([*lengths.shape, *(1,) * beyond]).to(x.dtype)
        return found / count if initial is None else torch.where(count > 0, found / count, found)

    def samples(self) -> Iterator[Sample]:
        for how in _HOW:
            for initial in (None, 1.5):
                lengths = {"lengths": torch.tensor([2, 0, 3, 1]), "initial": initial}
                yield Sample((torch.randn(6, 3), how), lengths)
                offsets = {"offsets": torch.tensor([[0, 2, 2, 5], [0, 1, 4, 5]]), "axis": 1, "initial": initial}
                yield Sample((torch.randn(2, 5, 3, dtype=torch.float64), how), offsets)
            yield Sample((torch.randn(6, 3), how), {"lengths": torch.tensor([2, 4])}, dynamic={0: {1: "n"}})


_MEAN, _MAX = 1, 2
"""Number the modes as PyTorch does; 0 is the sum."""


class EmbeddingBag(Translation, targets=("aten::embedding_bag", "aten::embedding_bag.padding_idx")):
    """Computes `embedding_bag`, sums, means or maxima of rows of a table, by scattering the rows into their bags.

    Each index belongs to the last bag that begins at or before it. Rows of the padding index are not counted. An empty
    bag is 0. PyTorch's exporter writes a loop over sequences, which onnxruntime does not load if the number of bags is
    dynamic.
    """

    def decompose(
        self, weight: Any, indices: Any, offsets: Any, scale_grad_by_freq: bool = False, mode: int = 0,
        sparse: bool = False, per_sample_weights: Any = None, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Any:  # fmt: skip
        del scale_grad_by_freq, sparse  # used in training only
        starts = (offsets[:-1] if include_last_offset else offsets).to(torch.int64)
        bags, width = starts.shape[0], weight.shape[1]
        owner = search(starts, torch.arange(indices.shape[0]), True) - 1
        places = owner.unsqueeze(1).expand(-1, width)
        counts = torch.ones_like(owner)
        if padding_idx is not None:  # a negative index counts from the end
            counts = (indices != padding_idx % weight.shape[0]).to(torch.int64)
        sizes = torch.zeros((bags,), dtype=torch.int64).scatter_add(0, owner, counts)
        rows = weight.index_select(0, indices.to(torch.int64))
        is_counted = counts.unsqueeze(1) > 0
        if mode == _MAX:
            lowest = torch.full((), torch.finfo(weight.dtype).min, dtype=weight.dtype)
            begun = torch.full((bags, width), torch.finfo(weight.dtype).min, dtype=weight.dtype)
            found = begun.scatter_reduce(0, places, torch.where(is_counted, rows, lowest), "amax")
            found = torch.where(sizes.unsqueeze(1) > 0, found, torch.zeros((), dtype=weight.dtype))
        else:
            rows = rows if per_sample_weights is None else rows * per_sample_weights.unsqueeze(1)
            rows = torch.where(is_counted, rows, torch.zeros((), dtype=weight.dtype))
            found = torch.zeros((bags, width), dtype=weight.dtype).scatter_add(0, places, rows)
            if mode == _MEAN:
                found = found / sizes.clamp(min=1).unsqueeze(1).to(weight.dtype)
        return found, owner, sizes, torch.zeros_like(sizes)

    def samples(self) -> Iterator[Sample]:
        table, indices = torch.randn(9, 4), torch.tensor([1, 0, 8, 3, 3, 0])
        offsets = torch.tensor([0, 2, 2, 5])
        for mode in (0, _MEAN, _MAX):
            yield Sample((table, indices, offsets, False, mode), around=first)
            given = (table, indices, offsets, False, mode, False, None, False, 0)
            yield Sample(given, {}, self.targets[1], around=first)
            yield Sample(given, {}, self.targets[1], {1: {0: "n"}, 2: {0: "bags"}}, around=first)
        weights = torch.rand(6)
        yield Sample((table, indices, offsets, False, 0, False, weights, True, -1), {}, self.targets[1], around=first)
        yield Sample((table, indices.int(), offsets.int()), around=first)


def first(operator: Callable[..., Any], *args: Any) -> Any:
    """Returns the bags alone, because the other results serve the gradient."""
    return operator(*args)[0]
