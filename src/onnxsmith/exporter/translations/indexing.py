"""Reads and writes elements by indices and masks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional

from onnxsmith.base.seams.torch.tensors import check
from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op


class MaskedSelect(Translation, targets="aten::masked_select"):
    """Computes `masked_select`, the elements where a mask is true: broadcasts and flattens both, then gathers."""

    def decompose(self, x: Any, mask: Any) -> Any:
        x, mask = torch.ops.aten.broadcast_tensors([x, mask])
        x, mask = x.reshape(-1), mask.reshape(-1)
        if x.shape[0] == 1:  # torch assumes that a computed size may be 2
            mask = torch.cat([mask, torch.zeros_like(mask)])
        return x.index_select(0, mask.nonzero().squeeze(1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4), torch.rand(3, 4) > 0.5))
        yield Sample((torch.randint(0, 9, (3, 1)), torch.rand(4) > 0.5))
        yield Sample((torch.tensor(1.0), torch.tensor(True)))
        yield Sample((torch.randn(3), torch.zeros(3).bool()))
        yield Sample((torch.randn(3, 4), torch.rand(3, 4) > 0.5), dynamic={0: {0: "n"}, 1: {0: "n"}})


class Nonzero(Translation, targets="aten::nonzero"):
    """Computes `nonzero` of a 0-d tensor: one row without coordinates if it is not zero, else none.

    ONNX's NonZero would give the row one coordinate. Other tensors are left to PyTorch's exporter.
    """

    def decompose(self, x: Any) -> Any:
        return x.reshape(1).nonzero().narrow(1, 0, 0) if x.dim() == 0 else NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.tensor(1.0),))
        yield Sample((torch.tensor(False),))
        yield Sample((torch.randint(0, 2, (3, 4)),))


class NonzeroStatic(Translation, targets="aten::nonzero_static"):
    """Computes `nonzero_static`, the indices of the first `size` nonzero elements, by a scatter.

    Each nonzero element is scattered to its rank among them. Elements beyond `size` go to an extra row that is dropped.
    Rows without an element are `fill_value`.
    """

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


class OneHot(Translation, functions=(functional.one_hot,)):
    """Computes `one_hot` without a number of classes, which is then the largest value plus 1, by a comparison.

    PyTorch refuses negative values; the graph writes rows of zeros for them. Calls with a number of classes are left to
    PyTorch's exporter.
    """

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


class Take(Translation, targets="aten::take"):
    """Computes `take`, elements at indices of the flat tensor, by ONNX's Gather. Negative indices count from the end in
    both."""

    def decompose(self, x: Any, index: Any) -> Any:
        return onnx_op("Gather", x.reshape(-1), index, shape=index.shape, axis=0)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4), torch.tensor([[0, 5], [-1, 2]])))
        yield Sample((torch.randint(0, 9, (3, 4)), torch.tensor(-2)))
        yield Sample((torch.tensor(1.0), torch.tensor([0, 0])))
        yield Sample((torch.randn(3), torch.zeros(2, 0).long()))
        yield Sample((torch.randn(3, 4), torch.tensor([0, -1])), dynamic={0: {0: "n"}, 1: {0: "m"}})


class Put(Translation, targets="aten::put"):
    """Computes `put`, a write at indices of the flat tensor, by a scatter. Negative indices count from the end."""

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


class ScatterIntoView(Translation, targets=("aten::as_strided_scatter", "aten::diagonal_scatter")):
    """Computes `as_strided_scatter` and `diagonal_scatter`, a tensor with the elements of a view replaced, by a
    scatter.

    Its indices are the same view of the numbers of all elements.
    """

    def decompose(self, x: Any, source: Any, *view: Any, **named: Any) -> Any:
        numbers = torch.arange(math.prod(x.shape))
        is_strided = "size" in named or (view and not isinstance(view[0], int))
        if is_strided:
            index = _strided(*view, **named)
        else:
            index = numbers.reshape(x.shape).diagonal(*view, **named).reshape(-1)
        return x.reshape(-1).scatter(0, index, source.reshape(-1)).reshape(x.shape)

    def samples(self) -> Iterator[Sample]:
        strided = "aten::as_strided_scatter"
        yield Sample((torch.randn(3, 4), torch.randn(2, 2), [2, 2], [4, 1], 1), {}, strided)
        yield Sample((torch.randn(6), torch.randn(2, 3), [2, 3], [1, 2]), {}, strided)
        yield Sample((torch.randn(6), torch.tensor(2.0), [], [], 3), {}, strided)
        diagonal = "aten::diagonal_scatter"
        yield Sample((torch.randn(3, 4), torch.randn(3)), {}, diagonal)
        yield Sample((torch.randn(2, 3, 4), torch.randn(3, 2), -1, -1, 0), {}, diagonal)
        yield Sample((torch.randint(0, 9, (3, 4)), torch.randint(0, 9, (2,)), 2), {}, diagonal)
        dynamic = {0: {0: "n"}, 1: {0: "n"}}
        yield Sample((torch.randn(3, 4, 4), torch.randn(3, 4), 0, 1, 2), {}, diagonal, dynamic)


def _strided(size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """Returns the numbers of the elements of a strided view, flat."""
    index = torch.full((1,) * len(size), storage_offset or 0, dtype=torch.int64)
    for axis, (length, step) in enumerate(zip(size, stride, strict=True)):
        sizes = [1] * len(size)
        sizes[axis] = length
        index = index + (torch.arange(length) * step).reshape(sizes)
    return index.reshape(-1)


class Where(Translation, targets="aten::where.self"):
    """Computes `where` of dtypes that PyTorch's exporter (complex) or onnxruntime (bool, int16) does not support.

    Complex numbers: both parts by one condition. Bools: `(condition and self) or (not condition and other)`. 16-bit
    integers: as 32-bit integers.
    """

    def decompose(self, condition: Any, self_: Any, other: Any) -> Any:
        if self_.dtype != other.dtype:
            return NotImplemented
        if self_.dtype.is_complex:
            parts = torch.view_as_real(self_), torch.view_as_real(other)
            return torch.view_as_complex(torch.where(condition.unsqueeze(-1), *parts))
        if self_.dtype == torch.bool:
            return (condition & self_) | (~condition & other)
        if self_.dtype == torch.int16:
            wide = torch.where(condition, self_.to(torch.int32), other.to(torch.int32))
            return wide.to(torch.int16)
        return NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4) > 0, numbers(3, 4), numbers(3, 4)))
        yield Sample((torch.randn(4) > 0, numbers(3, 4), numbers(3, 1)))
        yield Sample((torch.randn(4) > 0, torch.randn(4), torch.randn(2, 1)))
        bools = (torch.randn(4) > 0, torch.randn(3, 4) > 0, torch.randn(3, 1) > 0)
        yield Sample(bools, dynamic={1: {0: "n"}, 2: {0: "n"}})
        yield Sample((torch.randn(4) > 0, torch.tensor(True), torch.tensor(False)))
        yield Sample((torch.randn(4) > 0, torch.arange(4, dtype=torch.int16), torch.tensor(-7, dtype=torch.int16)))
