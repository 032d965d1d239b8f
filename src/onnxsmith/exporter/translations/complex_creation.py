"""Creates, fills and converts complex tensors. PyTorch's exporter has these operators for real tensors only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import ROWS, ComplexOperator, complex_operator, numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation, member


def filled(size: Sequence[Any], value: Any, dtype: torch.dtype | None) -> Any:
    """Returns a tensor of a complex dtype in which every element is `value`, or `NotImplemented` for other dtypes."""
    if dtype is None or not dtype.is_complex:
        return NotImplemented
    number = complex(value)
    parts = [torch.full(size, part, dtype=dtype.to_real()) for part in (number.real, number.imag)]
    return torch.view_as_complex(torch.stack(parts, -1))


def _creator(
    operator: str, decompose: Callable[..., Any], samples: Callable[[], Iterable[Sample]]
) -> type[Translation]:
    """Returns the translation of an operator that creates tensors, an entry of the table below. The lambdas leave out
    the layout, the device and the like."""
    name = "Complex" + operator.title().replace("_", "")
    return member(Translation, name, __name__, f"aten::{operator}", decompose=decompose, samples=samples)


def _of_size() -> Iterator[Sample]:
    yield Sample(([2, 3],), {"dtype": torch.complex64})
    yield Sample(([2, 3],))


def _like() -> Iterator[Sample]:
    yield Sample((torch.randn(2, 3, dtype=torch.complex64),), dynamic=ROWS)
    yield Sample((torch.randn(4),))
    yield Sample((torch.randn(2, 3),), {"dtype": torch.complex64})


def _new() -> Iterator[Sample]:
    yield Sample((numbers(3, 4), [2, 3]))
    yield Sample((torch.randn(2), [2, 3]))


ComplexFull = _creator(
    "full",
    lambda size, value, *, dtype=None, **_: filled(
        size, value, dtype or (torch.complex64 if isinstance(value, complex) else None)
    ),
    lambda: [
        Sample(([2, 3], 1), {"dtype": torch.complex64}),
        Sample(([3], 1.5 - 2j)),
        Sample(([], 2.5), {"dtype": torch.complex128}),
        Sample(([2, 0], 0), {"dtype": torch.complex64}),
        Sample(([2, 3], 2)),
    ],
)
ComplexFullLike = _creator(
    "full_like",
    lambda like, value, *, dtype=None, **_: filled(like.shape, value, dtype or like.dtype),
    lambda: [
        Sample((torch.randn(2, 3, dtype=torch.complex64), 1.5 - 2j), dynamic=ROWS),
        Sample((torch.randn(4), 2)),
        Sample((torch.randn(2, 3), 2.5), {"dtype": torch.complex64}),
    ],
)
ComplexZeros = _creator("zeros", lambda size, *, dtype=None, **_: filled(size, 0, dtype), _of_size)
ComplexOnes = _creator("ones", lambda size, *, dtype=None, **_: filled(size, 1, dtype), _of_size)
ComplexZerosLike = _creator(
    "zeros_like", lambda like, *, dtype=None, **_: filled(like.shape, 0, dtype or like.dtype), _like
)
ComplexOnesLike = _creator(
    "ones_like", lambda like, *, dtype=None, **_: filled(like.shape, 1, dtype or like.dtype), _like
)
ComplexNewZeros = _creator(
    "new_zeros", lambda like, size, *, dtype=None, **_: filled(size, 0, dtype or like.dtype), _new
)
ComplexNewOnes = _creator("new_ones", lambda like, size, *, dtype=None, **_: filled(size, 1, dtype or like.dtype), _new)


def written(op: Any, x: torch.Tensor) -> Any:
    """Overwrites every element, because the elements of an empty tensor are not defined."""
    return op(x).copy_(x)


# A model writes the elements before it reads them.
ComplexEmptyLike = _creator(
    "empty_like",
    lambda like, *, dtype=None, **_: filled(like.shape, 0, dtype or like.dtype),
    lambda: [Sample((numbers(3, 4),), around=written)],
)
ComplexFill = complex_operator(
    "fill",
    lambda z, value: torch.view_as_complex(parts(value, z.dtype).expand(*z.shape, 2).contiguous()),
    lambda: [Sample((numbers(3, 4), 2), dynamic=ROWS), Sample((numbers(3, 4), torch.tensor(1.5)))],
)


class ComplexCopy(ComplexOperator, targets="aten::copy"):
    """Copies into complex tensors (`copy`): the parts of the source, expanded to the shape of the target."""

    def value(self, z: Any, src: Any, non_blocking: bool = False) -> Any:
        copied = parts(src, z.dtype).to(z.dtype.to_real())
        return torch.view_as_complex(copied.expand(*z.shape, 2).contiguous())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(3, 4)), dynamic={**ROWS, 1: {0: "n"}})
        yield Sample((numbers(3, 4), torch.randn(4)))


class ComplexTo(ComplexOperator, targets="aten::_to_copy"):
    """Converts complex tensors to another precision, for each part alone."""

    def value(self, z: Any, *, dtype: Any = None, **_: Any) -> Any:
        if dtype is None or not dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(parts(z).to(dtype.to_real()))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4),), {"dtype": torch.complex128})
