"""Arithmetic of complex tensors. PyTorch's exporter has these operators for real tensors only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import before, joined, numbers, parts, product
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexAddmm(Translation):
    """Computes `addmm` and `baddbmm` of complex tensors as a product of their parts and a sum."""

    targets = ("aten::addmm", "aten::baddbmm")

    def decompose(self, self_: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        found = product(torch.matmul, mat1, mat2)
        return self_ * beta + found * alpha

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2), numbers(3, 4), numbers(4, 2)))
        yield Sample((numbers(2), numbers(3, 4), numbers(4, 2)), {"alpha": 0.5})


class ComplexConj(Translation):
    """Computes `conj` of complex tensors by negating the imaginary part."""

    targets = (
        "aten::_conj_physical",
        "aten::conj_physical",
    )

    def decompose(self, self_: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        real, imaginary = torch.view_as_real(self_.resolve_conj()).unbind(-1)
        return torch.view_as_complex(torch.stack([real, -imaginary], -1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2, 3),), target="aten::conj_physical", dynamic={0: {0: "n"}})
        yield Sample((numbers(2, 3),), target="aten::_conj_physical")


class ComplexCumsum(Translation):
    """Computes `cumsum` of complex tensors for each part alone."""

    targets = ("aten::cumsum",)

    def decompose(self, self_: Any, dim: int, *, dtype: Any = None) -> Any:
        if not self_.dtype.is_complex or dtype not in (None, self_.dtype):
            return NotImplemented
        return torch.view_as_complex(parts(self_).cumsum(before(dim)))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 0), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), -1))


class ComplexEinsum(Translation):
    """Computes `einsum` of complex tensors: a sum over all choices of one part of each operand, each times its power of
    i."""

    targets = ("aten::einsum",)

    def decompose(self, equation: str, tensors: Sequence[Any], *, path: Any = None) -> Any:
        del path
        if not any(one.is_complex() for one in tensors):
            return NotImplemented
        choices = [
            list(torch.view_as_real(one.resolve_conj()).unbind(-1)) if one.is_complex() else [one] for one in tensors
        ]
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


class ComplexExp(Translation):
    """Computes `exp` of complex tensors as e^a·(cos b + i·sin b) (DLMF 4.2.35)."""

    targets = ("aten::exp",)

    def decompose(self, self_: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        real, imaginary = torch.view_as_real(self_.resolve_conj()).unbind(-1)
        size = real.exp()
        return torch.view_as_complex(torch.stack([size * imaginary.cos(), size * imaginary.sin()], -1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2, 3),))
        yield Sample((numbers(2, 3),), dynamic={0: {0: "n"}})


class ComplexLinear(Translation):
    """Computes `linear` of complex tensors by four real products."""

    targets = ("aten::linear",)

    def decompose(self, self_: Any, weight: Any, bias: Any = None) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        found = product(torch.nn.functional.linear, self_, weight)
        return found if bias is None else found + bias

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(2, 4), numbers(2)), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), numbers(2, 4)))


class ComplexLog(Translation):
    """Computes `log` of complex tensors: the logarithm of the absolute value, and the angle (DLMF 4.2.3)."""

    targets = ("aten::log",)

    def decompose(self, self_: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        real, imaginary = torch.view_as_real(self_.resolve_conj()).unbind(-1)
        return joined(self_.abs().log(), torch.atan2(imaginary, real))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4),), dynamic={0: {0: "n"}})


class ComplexMatmul(Translation):
    """Multiplies complex matrices and vectors (`mm`, `bmm`, `mv`, `dot`) by four real products."""

    targets = ("aten::mm", "aten::bmm", "aten::mv", "aten::dot")

    def decompose(self, self_: Any, other: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return product(torch.matmul, self_, other)

    def samples(self) -> Iterator[Sample]:
        mm, bmm, mv, dot = self.targets
        yield Sample((numbers(3, 4), numbers(4, 2)), {}, mm, {0: {0: "n"}})
        yield Sample((numbers(2, 3, 4), numbers(2, 4, 5)), {}, bmm, {0: {0: "n"}, 1: {0: "n"}})
        yield Sample((numbers(3, 4), numbers(4)), {}, mv, {0: {0: "n"}})
        yield Sample((numbers(4), numbers(4)), {}, dot)


class ComplexMean(Translation):
    """Computes `mean` of complex tensors as the sum, with both parts divided by the number of elements.

    A trace of `torch.mean` would divide by the example's number, which fixes the axis.
    """

    targets = ()
    functions = (torch.mean, torch.Tensor.mean)

    def decompose(self, self_: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, **others: Any) -> Any:
        if not self_.dtype.is_complex or dtype is not None or others:
            return NotImplemented
        axes = list(range(self_.dim())) if dim is None else [dim] if isinstance(dim, int) else list(dim)
        count = math.prod(self_.shape[axis] for axis in axes or range(self_.dim()))
        return torch.view_as_complex(parts(self_.sum(axes, keepdim=keepdim)) / count)

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 0), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4),))
        yield Sample((numbers(3, 4), [0, -1], True))
        yield Sample((torch.randn(3, 4), 1))


class ComplexMul(Translation):
    """Multiplies by a complex number of Python (`x + 1j * y`), for each part alone. PyTorch's exporter lacks this
    product."""

    targets = ("aten::mul.Tensor", "aten::mul.Scalar")

    def decompose(self, self_: Any, other: Any) -> Any:
        if not isinstance(other, complex):
            return NotImplemented
        if self_.dtype.is_complex:
            real, imaginary = torch.view_as_real(self_.resolve_conj()).unbind(-1)
            parts = [real * other.real - imaginary * other.imag, real * other.imag + imaginary * other.real]
        else:
            x = self_ if self_.dtype.is_floating_point else self_.to(torch.get_default_dtype())
            parts = [x * other.real, x * other.imag]
        return torch.view_as_complex(torch.stack(parts, -1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(2, 3), 1.5j))
        yield Sample((torch.randn(2, 3, dtype=torch.complex64), 2 - 1j))
        yield Sample((torch.tensor([1, 2, 3]), 0.5 + 1j))


class ComplexPow(Translation):
    """Computes powers of complex tensors: as products for whole exponents up to 8, otherwise by absolute value and
    angle.

    The absolute value is raised to the power and the angle multiplied by it (DLMF 4.2.26).
    """

    targets = ("aten::pow.Tensor_Scalar",)

    def decompose(self, self_: Any, exponent: Any) -> Any:
        if not self_.dtype.is_complex or isinstance(exponent, complex):
            return NotImplemented
        if exponent == int(exponent) and 0 < abs(exponent) <= 8:  # a choice
            found = self_
            for _ in range(abs(int(exponent)) - 1):
                found = found * self_
            return found if exponent > 0 else found.reciprocal()
        real, imaginary = torch.view_as_real(self_.resolve_conj()).unbind(-1)
        size, angle = self_.abs() ** exponent, torch.atan2(imaginary, real) * exponent
        return joined(size * angle.cos(), size * angle.sin())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), 2), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), 3))
        yield Sample((numbers(3, 4), -1))
        yield Sample((numbers(3, 4), 0.5))
        yield Sample((numbers(3, 4), 2.5))


class ComplexReciprocal(Translation):
    """Computes `reciprocal` of complex tensors as 1/z = conj(z)/|z|² (DLMF 1.9.19).

    Divides by the larger part first, so that no square overflows.
    """

    targets = ("aten::reciprocal",)

    def decompose(self, self_: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        parts = torch.view_as_real(self_.resolve_conj())
        size = parts.abs().amax(-1, keepdim=True)
        scaled = parts / size
        real, imaginary = scaled.unbind(-1)
        turned = torch.stack([real, -imaginary], -1)
        return torch.view_as_complex(turned / (real * real + imaginary * imaginary).unsqueeze(-1) / size)

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(3, 4, dtype=torch.complex64),), dynamic={0: {0: "n"}})
        yield Sample((torch.tensor([1e-30 + 2e-30j, 3e30 - 1e30j, 2j, -4]),))
        yield Sample((torch.rand(3) + 1,))


class ComplexSqrt(Translation):
    """Computes `sqrt` of complex tensors: the root of the absolute value, and half the angle (DLMF 4.2.26)."""

    targets = ("aten::sqrt",)

    def decompose(self, self_: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        real, imaginary = torch.view_as_real(self_.resolve_conj()).unbind(-1)
        size, angle = self_.abs().sqrt(), torch.atan2(imaginary, real) / 2
        return joined(size * angle.cos(), size * angle.sin())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4),), dynamic={0: {0: "n"}})


class Silu(Translation):
    """Computes `silu` of complex tensors, z / (1 + e^-z), by multiplying with the conjugate of the divisor."""

    targets = ("aten::silu",)

    def decompose(self, self_: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        real, imaginary = torch.view_as_real(self_).unbind(-1)
        size = (-real).exp()
        below, turned = 1 + size * imaginary.cos(), -size * imaginary.sin()
        whole = below * below + turned * turned
        parts = ((real * below + imaginary * turned) / whole, (imaginary * below - real * turned) / whole)
        return torch.view_as_complex(torch.stack(parts, -1).contiguous())

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(3, 4, 2)
        yield Sample((x,), around=as_complex)
        yield Sample((x,), dynamic={0: {0: "n"}}, around=as_complex)
        yield Sample((torch.randn(1, 0, 3, dtype=torch.complex64),))
        yield Sample((torch.randn(3),))


def as_complex(op: Any, x: torch.Tensor) -> torch.Tensor:
    """Calls the operator on complex views, because inputs and outputs of a graph are real."""
    return torch.view_as_real(op(torch.view_as_complex(x)))
