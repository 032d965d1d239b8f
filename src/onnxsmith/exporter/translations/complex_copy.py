"""Copies into complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers, parts
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexCopy(Translation):
    """The parts of what is copied, in the shape of what is written."""

    targets = ("aten::copy",)

    def decompose(self, self_: Any, src: Any, non_blocking: bool = False) -> Any:
        del non_blocking
        if not self_.dtype.is_complex:
            return NotImplemented
        copied = parts(src, self_.dtype).to(self_.dtype.to_real())
        return torch.view_as_complex(copied.expand(*self_.shape, 2).contiguous())

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), numbers(3, 4)), dynamic={0: {0: "n"}, 1: {0: "n"}})
        yield Sample((numbers(3, 4), torch.randn(4)))
