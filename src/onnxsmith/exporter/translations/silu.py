"""`silu` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Silu(Translation):
    """z / (1 + e^-z); the quotient with the conjugate of the divisor, real and imaginary part apart."""

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
    """The operator between two views: inputs and outputs of a graph are real."""
    return torch.view_as_real(op(torch.view_as_complex(x)))
