"""`expand` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexExpand(Translation):
    """Each number's parts stay together."""

    targets = ("aten::expand",)

    def decompose(self, self_: Any, size: Sequence[Any], *, implicit: bool = False) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(torch.view_as_real(self_.resolve_conj()).expand((*size, 2)))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(2, 1), [2, 3]))
        yield Sample((numbers(2, 1), [4, -1, 3]))
