"""`repeat` of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexRepeat(Translation):
    """Each number's parts stay together."""

    targets = ("aten::repeat",)

    def decompose(self, self_: Any, repeats: Sequence[Any]) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        return torch.view_as_complex(parts(self_).repeat(*repeats, 1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [2, 1]), dynamic={0: {0: "n"}})
        yield Sample((numbers(3, 4), [2, 1, 3]))
