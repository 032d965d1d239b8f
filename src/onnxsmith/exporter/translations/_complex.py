"""Families of operators of complex tensors and of real ones.

Operators of complex tensors compute on their parts: real and imaginary part, on a new last axis.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, member

ROWS: Mapping[int, Mapping[int, str]] = {0: {0: "n"}}
"""Makes the first axis of the first argument of a sample dynamic."""


class ComplexOperator(Translation):
    """Computes an operator of complex tensors, which PyTorch's exporter has for real tensors only. Calls with a real
    tensor as the first argument are left to it."""

    @abstractmethod
    def value(self, z: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the operator of a complex tensor."""

    def decompose(self, self_: Any, *args: Any, **kwargs: Any) -> Any:
        return self.value(self_, *args, **kwargs) if self_.dtype.is_complex else NotImplemented


class RealOperator(Translation):
    """Computes an operator of real tensors. Calls with a complex tensor as the first argument are left to PyTorch's
    exporter."""

    @abstractmethod
    def value(self, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the operator of a real tensor."""

    def decompose(self, self_: Any, *args: Any, **kwargs: Any) -> Any:
        return NotImplemented if self_.is_complex() else self.value(self_, *args, **kwargs)


def complex_operator(
    operator: str, value: Callable[..., Any], samples: Callable[[], Iterable[Sample]]
) -> type[Translation]:
    """Returns the translation of an operator of aten by `value`, an entry of the table in the module of `value`. That
    of `select.int` is called `ComplexSelect`."""
    name = "Complex" + operator.partition(".")[0].title().replace("_", "")
    return member(ComplexOperator, name, value.__module__, f"aten::{operator}", value=value, samples=samples)


def both(z: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the real and the imaginary part of a complex tensor."""
    real, imaginary = parts(z).unbind(-1)
    return real, imaginary


def parts(z: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Returns the parts of `z` on a new last axis. A real tensor or a number has the imaginary part 0, and gets the
    real dtype of the complex `dtype`."""
    if isinstance(z, torch.Tensor) and z.is_complex():
        return torch.view_as_real(z.resolve_conj())
    assert dtype is not None
    if isinstance(z, torch.Tensor):
        real = z.to(dtype.to_real())
        return torch.stack([real, torch.zeros_like(real)], -1)
    number = complex(z)
    return torch.stack([torch.full((), one, dtype=dtype.to_real()) for one in (number.real, number.imag)])


def joined(real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
    """Returns the complex tensor with these parts."""
    return torch.view_as_complex(torch.stack([real, imaginary], -1))


def before(dim: int) -> int:
    """Returns the axis of the parts that is axis `dim` of the complex tensor."""
    return dim if dim >= 0 else dim - 1


def product(of: Callable[[Any, Any], Any], a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiplies complex tensors by `of`, a product of real tensors: (a + bi)(c + di) = (ac - bd) + (ad + bc)i."""
    (real_a, imag_a), (real_b, imag_b) = both(a), both(b)
    return joined(of(real_a, real_b) - of(imag_a, imag_b), of(real_a, imag_b) + of(imag_a, real_b))


def numbers(*shape: int) -> torch.Tensor:
    """Returns random complex numbers, for samples."""
    return torch.randn(*shape, dtype=torch.complex64)
