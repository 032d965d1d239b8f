"""`log` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import joined, numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexLog(Translation):
    """The logarithm of the absolute value, and the angle (DLMF 4.2.3)."""

    targets = ("aten::log",)

    def decompose(self, self_: Any) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        real, imaginary = torch.view_as_real(self_.resolve_conj()).unbind(-1)
        return joined(self_.abs().log(), torch.atan2(imaginary, real))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4),), dynamic={0: {0: "n"}})
