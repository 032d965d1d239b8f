"""`exp` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexExp(Translation):
    """e^a·(cos b + i·sin b) (DLMF 4.2.35)."""

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
