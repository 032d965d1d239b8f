"""Arithmetic of complex tensors. PyTorch's exporter has these operators for real tensors only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import (
    ROWS,
    ComplexOperator,
    before,
    both,
    complex_operator,
    joined,
    numbers,
    parts,
    product,
)
from onnxsmith.exporter.translations.base import Sample, Translation


def _of_one() -> Iterator[Sample]:
    yield Sample((numbers(3, 4),), dynamic=ROWS)


def _log(z: Any) -> Any:
    """Computes the logarithm of the absolute value, and the angle (DLMF 4.2.3)."""
    real, imaginary = both(z)
    return joined(z.abs().log(), torch.atan2(imaginary, real))


def _sqrt(z: Any) -> Any:
    """Computes the root of the absolute value, and half the angle (DLMF 4.2.26)."""
    real, imaginary = both(z)
    size, angle = z.abs().sqrt(), torch.atan2(imaginary, real) / 2
    return joined(size * angle.cos(), size * angle.sin())


def _exp(z: Any) -> Any:
    """Computes e^a·(cos b + i·sin b) (DLMF 4.2.35)."""
    real, imaginary = both(z)
    size = real.exp()
    return joined(size * imaginary.cos(), size * imaginary.sin())


def _linear(z: Any, weight: Any, bias: Any = None) -> Any:
    found = product(torch.nn.functional.linear, z, weight)
    return found if bias is None else found + bias


ComplexLog = complex_operator("log", _log, _of_one)
ComplexSqrt = complex_operator("sqrt", _sqrt, _of_one)
ComplexExp = complex_operator("exp", _exp, lambda: [Sample((numbers(2, 3),)), Sample((numbers(2, 3),), dynamic=ROWS)])
ComplexCumsum = complex_operator(
    "cumsum",
    lambda z, dim, *, dtype=None: (
        torch.view_as_complex(parts(z).cumsum(before(dim))) if dtype in (None, z.dtype) else NotImplemented
    ),
    lambda: [Sample((numbers(3, 4), 0), dynamic=ROWS), Sample((numbers(3, 4), -1))],
)
ComplexLinear = complex_operator(
    "linear",
    _linear,
    lambda: [
        Sample((numbers(3, 4), numbers(2, 4), numbers(2)), dynamic=ROWS),
        Sample((numbers(3, 4), numbers(2, 4))),
    ],
)


class ComplexMatmul(ComplexOperator, targets=("aten::mm", "aten::bmm", "aten::mv", "aten::dot")):
    """Multiplies complex matrices and vectors (`mm`, `bmm`, `mv`, `dot`) by four real products."""

    def value(self, z: Any, other: Any) -> Any:
        return product(torch.matmul, z, other)

    def samples(self) -> Iterator[Sample]:
        mm, bmm, mv, dot = self.targets
        yield Sample((numbers(3, 4), numbers(4, 2)), {}, mm, ROWS)
        yield Sample((numbers(2, 3, 4), numbers(2, 4, 5)), {}, bmm, {**ROWS, 1: {0: "n"}})
        yield Sample((numbers(3, 4), numbers(4)), {}, mv, ROWS)
        yield Sample((numbers(4), numbers(4)), {}, dot)


class ComplexAddmm(ComplexOperator, targets=("aten::addmm", "aten::baddbmm")):
    """Computes `addmm` and `baddbmm` of complex tensors as a product of their parts and a sum."""

    def value(self, z: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        found = product(torch.matmul, mat1, mat2)
        return z * beta + found * alpha

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2), numbers(3, 4), numbers(4, 2)))
        yield Sample((numbers(2), numbers(3, 4), numbers(4, 2)), {"alpha": 0.5})


class ComplexConj(ComplexOperator, targets=("aten::_conj_physical", "aten::conj_physical")):
    """Computes `conj` of complex tensors by negating the imaginary part."""

    def value(self, z: Any) -> Any:
        real, imaginary = both(z)
        return joined(real, -imaginary)

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2, 3),), target="aten::conj_physical", dynamic=ROWS)
        yield Sample((numbers(2, 3),), target="aten::_conj_physical")


class ComplexPow(ComplexOperator, targets="aten::pow.Tensor_Scalar"):
    """Computes powers of complex tensors: as products for whole exponents up to 8, otherwise by absolute value and
    angle.

    The absolute value is raised to the power and the angle multiplied by it (DLMF 4.2.26).
    """

    def value(self, z: Any, exponent: Any) -> Any:
        if isinstance(exponent, complex):
            return NotImplemented
        if exponent == int(exponent) and 0 < abs(exponent) <= 8:  # a choice
            found = z
            for _ in range(abs(int(exponent)) - 1):
                found = found * z
            return found if exponent > 0 else found.reciprocal()
        real, imaginary = both(z)
        size, angle = z.abs() ** exponent, torch.atan2(imaginary, real) * exponent
        return joined(size * angle.cos(), size * angle.sin())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 2), dynamic=ROWS)
        for exponent in (3, -1, 0.5, 2.5):
            yield Sample((numbers(3, 4), exponent))


class ComplexReciprocal(ComplexOperator, targets="aten::reciprocal"):
    """Computes `reciprocal` of complex tensors as 1/z = conj(z)/|z|² (DLMF 1.9.19).

    Divides by the larger part first, so that no square overflows.
    """

    def value(self, z: Any) -> Any:
        given = parts(z)
        size = given.abs().amax(-1, keepdim=True)
        real, imaginary = (given / size).unbind(-1)
        turned = torch.stack([real, -imaginary], -1)
        return torch.view_as_complex(turned / (real * real + imaginary * imaginary).unsqueeze(-1) / size)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4, dtype=torch.complex64),), dynamic=ROWS)
        yield Sample((torch.tensor([1e-30 + 2e-30j, 3e30 - 1e30j, 2j, -4]),))
        yield Sample((torch.rand(3) + 1,))


class Silu(ComplexOperator, targets="aten::silu"):
    """Computes `silu` of complex tensors, z / (1 + e^-z), by multiplying with the conjugate of the divisor."""

    def value(self, z: Any) -> Any:
        real, imaginary = torch.view_as_real(z).unbind(-1)
        size = (-real).exp()
        below, turned = 1 + size * imaginary.cos(), -size * imaginary.sin()
        whole = below * below + turned * turned
        found = ((real * below + imaginary * turned) / whole, (imaginary * below - real * turned) / whole)
        return torch.view_as_complex(torch.stack(found, -1).contiguous())

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(3, 4, 2)
        yield Sample((x,), around=as_complex)
        yield Sample((x,), dynamic=ROWS, around=as_complex)
        yield Sample((torch.randn(1, 0, 3, dtype=torch.complex64),))
        yield Sample((torch.randn(3),))


def as_complex(op: Any, x: torch.Tensor) -> torch.Tensor:
    """Calls the operator on complex views, because inputs and outputs of a graph are real."""
    return torch.view_as_real(op(torch.view_as_complex(x)))


class ComplexMean(ComplexOperator, functions=(torch.mean, torch.Tensor.mean)):
    """Computes `mean` of complex tensors as the sum, with both parts divided by the number of elements.

    A trace of `torch.mean` would divide by the example's number, which fixes the axis.
    """

    def value(self, z: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **others: Any) -> Any:
        if dtype is not None or others:
            return NotImplemented
        axes = list(range(z.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
        count = math.prod(z.shape[axis] for axis in axes or range(z.dim()))
        return torch.view_as_complex(parts(z.sum(axes, keepdim=keepdim)) / count)

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 0), dynamic=ROWS)
        yield Sample((numbers(3, 4),))
        yield Sample((numbers(3, 4), [0, -1], True))
        yield Sample((torch.randn(3, 4), 1))


class ComplexEinsum(Translation, targets="aten::einsum"):
    """Computes `einsum` of complex tensors: a sum over all choices of one part of each operand, each times its power of
    i."""

    def decompose(self, equation: str, tensors: Sequence[Any], *, path: Any = None) -> Any:
        del path
        if not any(one.is_complex() for one in tensors):
            return NotImplemented
        choices = [list(both(one)) if one.is_complex() else [one] for one in tensors]
        signed: tuple[list[Any], list[Any]] = ([], [])
        for chosen in itertools.product(*map(enumerate, choices)):
            power = sum(at for at, _ in chosen)
            term = torch.einsum(equation, [one for _, one in chosen])
            signed[power % 2].append(term if power % 4 < 2 else -term)
        return joined(sum(signed[0][1:], signed[0][0]), sum(signed[1][1:], signed[1][0]))

    def samples(self) -> Iterator[Sample]:
        yield Sample(("nm,mk->nk", [numbers(3, 4), numbers(4, 2)]))
        yield Sample(("nm,m,nk->k", [numbers(3, 4), numbers(4), numbers(3, 4)]))
        yield Sample(("nm,nm->n", [torch.randn(2, 3), torch.randn(2, 3)]))


class ComplexMul(Translation, targets=("aten::mul.Tensor", "aten::mul.Scalar")):
    """Multiplies by a complex number of Python (`x + 1j * y`), for each part alone. PyTorch's exporter lacks this
    product."""

    def decompose(self, self_: Any, other: Any) -> Any:
        if not isinstance(other, complex):
            return NotImplemented
        if self_.dtype.is_complex:
            real, imaginary = both(self_)
            return joined(real * other.real - imaginary * other.imag, real * other.imag + imaginary * other.real)
        x = self_ if self_.dtype.is_floating_point else self_.to(torch.get_default_dtype())
        return joined(x * other.real, x * other.imag)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 3), 1.5j))
        yield Sample((torch.randn(2, 3, dtype=torch.complex64), 2 - 1j))
        yield Sample((torch.tensor([1, 2, 3]), 0.5 + 1j))
