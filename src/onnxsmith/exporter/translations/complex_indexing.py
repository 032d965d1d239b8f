"""Reads, writes and moves elements of complex tensors. PyTorch's exporter has these operators for real tensors only.

Real and imaginary part lie on a last axis that these operators leave alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import before, numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexExpand(Translation):
    """Computes `expand` of complex tensors on their parts."""

    targets = ("aten::expand",)

    def decompose(self, self_: Any, size: Sequence[Any], *, implicit: bool = False) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(torch.view_as_real(self_.resolve_conj()).expand((*size, 2)))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2, 1), [2, 3]))
        yield Sample((numbers(2, 1), [4, -1, 3]))


class ComplexGather(Translation):
    """Computes `gather` of complex tensors on their parts, with the index repeated for both."""

    targets = ("aten::gather",)

    def decompose(self, self_: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
        del sparse_grad
        if not self_.dtype.is_complex:
            return NotImplemented
        places = index.unsqueeze(-1).expand(*index.shape, 2)
        return torch.view_as_complex(parts(self_).gather(before(dim), places))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 1, torch.tensor([[0, 3], [1, 1]])))
        yield Sample((numbers(3, 4), -1, torch.tensor([[0, 3], [1, 1]])))


class ComplexIndex(Translation):
    """Indexes complex tensors. The axis of the parts comes after all indexed axes."""

    targets = ("aten::index.Tensor",)

    def decompose(self, self_: Any, indices: Sequence[Any]) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(torch.ops.aten.index.Tensor(parts(self_), indices).contiguous())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [torch.tensor([2, 0])]), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), [None, torch.tensor([1, 1])]))
        yield Sample((numbers(3, 4), [torch.tensor([0, 1]), torch.tensor([1, 3])]))


class ComplexIndexPut(Translation):
    """Writes at indices of complex tensors. The axis of the parts comes after all indexed axes."""

    targets = ("aten::index_put",)

    def decompose(self, self_: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        written = parts(values, self_.dtype)
        return torch.view_as_complex(torch.ops.aten.index_put.default(parts(self_), indices, written, accumulate))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [torch.tensor([2, 0])], numbers(2, 4)))
        yield Sample((numbers(3, 4), [torch.tensor([2, 0]), torch.tensor([1, 1])], torch.tensor(1j)))


class ComplexIndexSelect(Translation):
    """Computes `index_select` of complex tensors on their parts."""

    targets = ("aten::index_select",)

    def decompose(self, self_: Any, dim: int, index: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(parts(self_).index_select(before(dim), index))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 0, torch.tensor([2, 0])), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), -1, torch.tensor([1])))


class ComplexMaskedFill(Translation):
    """Computes `masked_fill` of complex tensors: both parts where the mask is true."""

    targets = ("aten::masked_fill",)

    def decompose(self, self_: Any, mask: Any, value: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(torch.where(mask.unsqueeze(-1), parts(value, self_.dtype), parts(self_)))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), torch.rand(3, 4) > 0.5, 0), dynamic={0: {0: "n"}, 1: {0: "n"}})
        yield Sample((numbers(3, 4), torch.rand(4) > 0.5, 1 - 2j))
        yield Sample((numbers(3, 4), torch.rand(3, 1) > 0.5, torch.tensor(2.0)))


class ComplexPad(Translation):
    """Pads complex tensors by a constant, for each part alone."""

    targets = ("aten::constant_pad_nd",)

    def decompose(self, self_: Any, pad: Sequence[Any], value: Any = 0) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        parts = torch.view_as_real(self_.resolve_conj())
        real, imaginary = (
            torch.nn.functional.pad(part, list(pad), value=filling)
            for part, filling in zip(parts.unbind(-1), (complex(value).real, complex(value).imag), strict=True)
        )
        return torch.view_as_complex(torch.stack([real, imaginary], -1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [1, 2]))
        yield Sample((numbers(3, 4), [1, -1, 0, 2], 1.5 - 2j))
        yield Sample((numbers(3, 4), [0, 0, 2, 1]), dynamic={0: {1: "n"}})


class ComplexRepeat(Translation):
    """Computes `repeat` of complex tensors on their parts."""

    targets = ("aten::repeat",)

    def decompose(self, self_: Any, repeats: Sequence[Any]) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(parts(self_).repeat(*repeats, 1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [2, 1]), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), [2, 1, 3]))


class ComplexSelect(Translation):
    """Computes `select` of complex tensors on their parts."""

    targets = ("aten::select.int",)

    def decompose(self, self_: Any, dim: int, index: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        parts = torch.view_as_real(self_.resolve_conj())
        return torch.view_as_complex(parts.select(dim if dim >= 0 else dim - 1, index))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2, 3), -1, 0))
        yield Sample((numbers(2, 3), 0, -1))
        yield Sample((numbers(2, 3), -2, 1), dynamic={0: {1: "n"}})


class ComplexSelectScatter(Translation):
    """Computes `select_scatter` of complex tensors on their parts."""

    targets = ("aten::select_scatter",)

    def decompose(self, self_: Any, src: Any, dim: int, index: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(torch.select_scatter(parts(self_), parts(src, self_.dtype), before(dim), index))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(3), -1, 2))
        yield Sample((numbers(3, 4), numbers(4), 0, -1))


class ComplexSliceScatter(Translation):
    """Computes `slice_scatter` of complex tensors on their parts."""

    targets = ("aten::slice_scatter",)

    def decompose(self, self_: Any, src: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        written = parts(src, self_.dtype)
        return torch.view_as_complex(torch.slice_scatter(parts(self_), written, before(dim), start, end, step))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(3, 2), 1, 1, 3))
        yield Sample((numbers(3, 4), numbers(3, 2), -1, -2, 9))
        yield Sample((numbers(3, 4), numbers(2, 4), 0, 0, 3, 2))


class ComplexSplit(Translation):
    """Computes `split` of complex tensors on their parts."""

    targets = ("aten::split.Tensor",)

    def decompose(self, self_: Any, split_size: Any, dim: int = 0) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        found: Any = torch.split
        return [torch.view_as_complex(one) for one in found(parts(self_), split_size, before(dim))]

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 2))
        yield Sample((numbers(3, 4), 3, -1))


class ComplexTile(Translation):
    """Computes `tile` of complex tensors on their parts."""

    targets = ("aten::tile",)

    def decompose(self, self_: Any, dims: Sequence[Any]) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(parts(self_).repeat(*[1] * (self_.dim() - len(dims)), *dims, 1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [2]), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), [2, 1, 3]))


class ComplexUnbind(Translation):
    """Computes `unbind` of complex tensors on their parts."""

    targets = ("aten::unbind.int",)

    def decompose(self, self_: Any, dim: int = 0) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return [torch.view_as_complex(one.contiguous()) for one in parts(self_).unbind(before(dim))]

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4),))
        yield Sample((numbers(3, 4), -1))


class ComplexUnsqueeze(Translation):
    """Computes `unsqueeze` of complex tensors: the new axis stands before that of the parts."""

    targets = ("aten::unsqueeze",)

    def decompose(self, self_: Any, dim: int) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        parts = torch.view_as_real(self_.resolve_conj())
        return torch.view_as_complex(parts.unsqueeze(dim if dim >= 0 else dim - 1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2, 3), -1))
        yield Sample((numbers(2, 3), 0))
        yield Sample((numbers(2, 3), -2), dynamic={0: {0: "n"}})


class ComplexWhere(Translation):
    """Computes `where` of complex tensors and numbers: both parts by one condition."""

    targets = ("aten::where.ScalarOther", "aten::where.ScalarSelf")

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
