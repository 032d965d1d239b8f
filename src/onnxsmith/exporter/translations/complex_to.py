"""Conversions of complex tensors to another precision, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexTo(Translation):
    """Each part by itself."""

    targets = ("aten::_to_copy",)

    def decompose(self, self_: Any, *, dtype: Any = None, **_: Any) -> Any:
        if not self_.dtype.is_complex or dtype is None or not dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(parts(self_).to(dtype.to_real()))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4),), {"dtype": torch.complex128})
