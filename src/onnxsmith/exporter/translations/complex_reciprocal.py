"""`reciprocal` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexReciprocal(Translation):
    """1/z = conj(z)/|z|² (DLMF 1.9.19), after a division by the larger part, so that no square overflows."""

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
