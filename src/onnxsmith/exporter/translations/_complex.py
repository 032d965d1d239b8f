"""The parts of a complex tensor: real and imaginary part, on a new last axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


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
    (real_a, imag_a), (real_b, imag_b) = (torch.view_as_real(one.resolve_conj()).unbind(-1) for one in (a, b))
    return joined(of(real_a, real_b) - of(imag_a, imag_b), of(real_a, imag_b) + of(imag_a, real_b))


def numbers(*shape: int) -> torch.Tensor:
    """Returns random complex numbers, for samples."""
    return torch.randn(*shape, dtype=torch.complex64)
