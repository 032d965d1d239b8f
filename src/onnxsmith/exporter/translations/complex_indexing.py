"""Reads, writes and moves elements of complex tensors. PyTorch's exporter has these operators for real tensors only.

Real and imaginary part lie on a last axis that these operators leave alone. It comes after all indexed axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import (
    ROWS,
    ComplexOperator,
    before,
    complex_operator,
    joined,
    numbers,
    parts,
)
from onnxsmith.exporter.translations.base import Sample, Translation

_as_complex = torch.view_as_complex

ComplexExpand = complex_operator(
    "expand",
    lambda z, size, *, implicit=False: _as_complex(parts(z).expand((*size, 2))),
    lambda: [Sample((numbers(2, 1), [2, 3])), Sample((numbers(2, 1), [4, -1, 3]))],
)
ComplexIndex = complex_operator(
    "index.Tensor",
    lambda z, indices: _as_complex(torch.ops.aten.index.Tensor(parts(z), indices).contiguous()),
    lambda: [
        Sample((numbers(3, 4), [torch.tensor([2, 0])]), dynamic=ROWS),
        Sample((numbers(3, 4), [None, torch.tensor([1, 1])])),
        Sample((numbers(3, 4), [torch.tensor([0, 1]), torch.tensor([1, 3])])),
    ],
)
ComplexIndexSelect = complex_operator(
    "index_select",
    lambda z, dim, index: _as_complex(parts(z).index_select(before(dim), index)),
    lambda: [
        Sample((numbers(3, 4), 0, torch.tensor([2, 0])), dynamic=ROWS),
        Sample((numbers(3, 4), -1, torch.tensor([1]))),
    ],
)
ComplexMaskedFill = complex_operator(
    "masked_fill",
    lambda z, mask, value: _as_complex(torch.where(mask.unsqueeze(-1), parts(value, z.dtype), parts(z))),
    lambda: [
        Sample((numbers(3, 4), torch.rand(3, 4) > 0.5, 0), dynamic={**ROWS, 1: {0: "n"}}),
        Sample((numbers(3, 4), torch.rand(4) > 0.5, 1 - 2j)),
        Sample((numbers(3, 4), torch.rand(3, 1) > 0.5, torch.tensor(2.0))),
    ],
)
ComplexRepeat = complex_operator(
    "repeat",
    lambda z, repeats: _as_complex(parts(z).repeat(*repeats, 1)),
    lambda: [Sample((numbers(3, 4), [2, 1]), dynamic=ROWS), Sample((numbers(3, 4), [2, 1, 3]))],
)
ComplexTile = complex_operator(
    "tile",
    lambda z, dims: _as_complex(parts(z).repeat(*[1] * (z.dim() - len(dims)), *dims, 1)),
    lambda: [Sample((numbers(3, 4), [2]), dynamic=ROWS), Sample((numbers(3, 4), [2, 1, 3]))],
)
ComplexSelect = complex_operator(
    "select.int",
    lambda z, dim, index: _as_complex(parts(z).select(before(dim), index)),
    lambda: [
        Sample((numbers(2, 3), -1, 0)),
        Sample((numbers(2, 3), 0, -1)),
        Sample((numbers(2, 3), -2, 1), dynamic={0: {1: "n"}}),
    ],
)
ComplexSelectScatter = complex_operator(
    "select_scatter",
    lambda z, src, dim, at: _as_complex(torch.select_scatter(parts(z), parts(src, z.dtype), before(dim), at)),
    lambda: [Sample((numbers(3, 4), numbers(3), -1, 2)), Sample((numbers(3, 4), numbers(4), 0, -1))],
)
ComplexSplit = complex_operator(
    "split.Tensor",
    lambda z, size, dim=0: [_as_complex(one) for one in torch.ops.aten.split.Tensor(parts(z), size, before(dim))],
    lambda: [Sample((numbers(3, 4), 2)), Sample((numbers(3, 4), 3, -1))],
)
ComplexUnbind = complex_operator(
    "unbind.int",
    lambda z, dim=0: [_as_complex(one.contiguous()) for one in parts(z).unbind(before(dim))],
    lambda: [Sample((numbers(3, 4),)), Sample((numbers(3, 4), -1))],
)
ComplexUnsqueeze = complex_operator(
    "unsqueeze",
    lambda z, dim: _as_complex(parts(z).unsqueeze(before(dim))),
    lambda: [
        Sample((numbers(2, 3), -1)),
        Sample((numbers(2, 3), 0)),
        Sample((numbers(2, 3), -2), dynamic=ROWS),
    ],
)


class ComplexGather(ComplexOperator, targets="aten::gather"):
    """Computes `gather` of complex tensors on their parts, with the index repeated for both."""

    def value(self, z: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
        places = index.unsqueeze(-1).expand(*index.shape, 2)
        return torch.view_as_complex(parts(z).gather(before(dim), places))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 1, torch.tensor([[0, 3], [1, 1]])))
        yield Sample((numbers(3, 4), -1, torch.tensor([[0, 3], [1, 1]])))


class ComplexIndexPut(ComplexOperator, targets="aten::index_put"):
    """Writes at indices of complex tensors."""

    def value(self, z: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
        written = parts(values, z.dtype)
        return torch.view_as_complex(torch.ops.aten.index_put.default(parts(z), indices, written, accumulate))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [torch.tensor([2, 0])], numbers(2, 4)))
        yield Sample((numbers(3, 4), [torch.tensor([2, 0]), torch.tensor([1, 1])], torch.tensor(1j)))


class ComplexSliceScatter(ComplexOperator, targets="aten::slice_scatter"):
    """Computes `slice_scatter` of complex tensors on their parts."""

    def value(self, z: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
        written = parts(src, z.dtype)
        return torch.view_as_complex(torch.slice_scatter(parts(z), written, before(dim), start, end, step))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(3, 2), 1, 1, 3))
        yield Sample((numbers(3, 4), numbers(3, 2), -1, -2, 9))
        yield Sample((numbers(3, 4), numbers(2, 4), 0, 0, 3, 2))


class ComplexPad(ComplexOperator, targets="aten::constant_pad_nd"):
    """Pads complex tensors by a constant, for each part alone."""

    def value(self, z: Any, pad: Sequence[Any], value: Any = 0) -> Any:
        fillings = (complex(value).real, complex(value).imag)
        return joined(
            *(
                torch.nn.functional.pad(part, list(pad), value=filling)
                for part, filling in zip(parts(z).unbind(-1), fillings, strict=True)
            )
        )

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [1, 2]))
        yield Sample((numbers(3, 4), [1, -1, 0, 2], 1.5 - 2j))
        yield Sample((numbers(3, 4), [0, 0, 2, 1]), dynamic={0: {1: "n"}})


class ComplexWhere(Translation, targets=("aten::where.ScalarOther", "aten::where.ScalarSelf")):
    """Computes `where` of complex tensors and numbers: both parts by one condition."""

    def decompose(self, condition: Any, self_: Any, other: Any) -> Any:
        tensors = [one for one in (self_, other) if isinstance(one, torch.Tensor)]
        dtypes = [one.dtype for one in tensors if one.is_complex()]
        if not dtypes:
            return NotImplemented
        chosen, instead = (parts(one, dtypes[0]) for one in (self_, other))
        return torch.view_as_complex(torch.where(condition.unsqueeze(-1), chosen, instead))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.rand(3, 4) > 0.5, numbers(3, 4), 0))
        yield Sample((torch.rand(3, 4) > 0.5, 1.5, numbers(3, 4)), target="aten::where.ScalarSelf")
