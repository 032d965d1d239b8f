"""Creates, fills and converts complex tensors. PyTorch's exporter has these operators for real tensors only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexFull(Translation):
    """Computes `full` of complex numbers for each part alone."""

    targets = ("aten::full",)

    def decompose(self, size: Sequence[Any], fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or (torch.complex64 if isinstance(fill_value, complex) else None)
        if given is None or not given.is_complex:
            return NotImplemented
        return filled(size, fill_value, given)

    def samples(self) -> Iterator[Sample]:
        yield Sample(([2, 3], 1), {"dtype": torch.complex64})
        yield Sample(([3], 1.5 - 2j))
        yield Sample(([], 2.5), {"dtype": torch.complex128})
        yield Sample(([2, 0], 0), {"dtype": torch.complex64})
        yield Sample(([2, 3], 2))


def filled(size: Sequence[Any], value: Any, dtype: torch.dtype) -> torch.Tensor:
    """Returns a complex tensor in which every element is `value`."""
    number = complex(value)
    parts = [torch.full(size, part, dtype=dtype.to_real()) for part in (number.real, number.imag)]
    return torch.view_as_complex(torch.stack(parts, -1))


class ComplexFullLike(Translation):
    """Computes `full_like` of complex numbers for each part alone."""

    targets = ("aten::full_like",)

    def decompose(self, self_: Any, fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or self_.dtype
        if not given.is_complex:
            return NotImplemented
        return filled(self_.shape, fill_value, given)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 3, dtype=torch.complex64), 1.5 - 2j), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(4), 2))
        yield Sample((torch.randn(2, 3), 2.5), {"dtype": torch.complex64})


class ComplexZeros(Translation):
    """Computes `zeros` of complex numbers for each part alone."""

    targets = ("aten::zeros",)

    def decompose(self, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Any:
        return filled(size, 0, dtype) if dtype is not None and dtype.is_complex else NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample(([2, 3],), {"dtype": torch.complex64})
        yield Sample(([2, 3],))


class ComplexZerosLike(Translation):
    """Computes `zeros_like` of complex numbers for each part alone."""

    targets = ("aten::zeros_like",)

    def decompose(self, self_: Any, *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or self_.dtype
        if not given.is_complex:
            return NotImplemented
        return filled(self_.shape, 0, given)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 3, dtype=torch.complex64),), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(4),))
        yield Sample((torch.randn(2, 3),), {"dtype": torch.complex64})


class ComplexNewZeros(Translation):
    """Computes `new_zeros` of complex numbers for each part alone."""

    targets = ("aten::new_zeros",)

    def decompose(self, self_: Any, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or self_.dtype
        return filled(size, 0, given) if given.is_complex else NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [2, 3]))
        yield Sample((torch.randn(2), [2, 3]))


class ComplexOnes(Translation):
    """Computes `ones` of complex numbers for each part alone."""

    targets = ("aten::ones",)

    def decompose(self, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Any:
        return filled(size, 1, dtype) if dtype is not None and dtype.is_complex else NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample(([2, 3],), {"dtype": torch.complex64})
        yield Sample(([2, 3],))


class ComplexOnesLike(Translation):
    """Computes `ones_like` of complex numbers for each part alone."""

    targets = ("aten::ones_like",)

    def decompose(self, self_: Any, *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or self_.dtype
        if not given.is_complex:
            return NotImplemented
        return filled(self_.shape, 1, given)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 3, dtype=torch.complex64),), dynamic={0: {0: "n"}})
        yield Sample((torch.randn(4),))
        yield Sample((torch.randn(2, 3),), {"dtype": torch.complex64})


class ComplexNewOnes(Translation):
    """Computes `new_ones` of complex numbers for each part alone."""

    targets = ("aten::new_ones",)

    def decompose(self, self_: Any, size: Sequence[Any], *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or self_.dtype
        return filled(size, 1, given) if given.is_complex else NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [2, 3]))
        yield Sample((torch.randn(2), [2, 3]))


class ComplexEmptyLike(Translation):
    """Computes `empty_like` of complex numbers as zeros. A model writes the elements before it reads them."""

    targets = ("aten::empty_like",)

    def decompose(self, self_: Any, *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or self_.dtype
        return filled(self_.shape, 0, given) if given.is_complex else NotImplemented

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4),), around=written)


def written(op: Any, x: torch.Tensor) -> Any:
    """Overwrites every element, because the elements of an empty tensor are not defined."""
    return op(x) * 0 + x


class ComplexFill(Translation):
    """Computes `fill` of complex tensors by expanding the parts of one number."""

    targets = ("aten::fill",)

    def decompose(self, self_: Any, value: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(parts(value, self_.dtype).expand(*self_.shape, 2).contiguous())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 2), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), torch.tensor(1.5)))


class ComplexCopy(Translation):
    """Copies into complex tensors (`copy`): the parts of the source, expanded to the shape of the target."""

    targets = ("aten::copy",)

    def decompose(self, self_: Any, src: Any, non_blocking: bool = False) -> Any:
        del non_blocking
        if not self_.dtype.is_complex:
            return NotImplemented
        copied = parts(src, self_.dtype).to(self_.dtype.to_real())
        return torch.view_as_complex(copied.expand(*self_.shape, 2).contiguous())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(3, 4)), dynamic={0: {0: "n"}, 1: {0: "n"}})
        yield Sample((numbers(3, 4), torch.randn(4)))


class ComplexTo(Translation):
    """Converts complex tensors to another precision, for each part alone."""

    targets = ("aten::_to_copy",)

    def decompose(self, self_: Any, *, dtype: Any = None, **_: Any) -> Any:
        if not self_.dtype.is_complex or dtype is None or not dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(parts(self_).to(dtype.to_real()))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4),), {"dtype": torch.complex128})
