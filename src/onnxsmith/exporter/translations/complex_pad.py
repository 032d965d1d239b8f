"""Padding of complex tensors, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations._complex import numbers
from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexPad(Translation):
    """Each part by itself."""

    targets = ("aten::constant_pad_nd",)

    def decompose(self, self_: Any, pad: Sequence[Any], value: Any = 0) -> Any:
        if not self_.dtype.is_complex:
            return NotImplemented
        parts = torch.view_as_real(self_.resolve_conj())
        real, imaginary = (
            torch.nn.functional.pad(part, list(pad), value=filling)
            for part, filling in zip(parts.unbind(-1), (complex(value).real, complex(value).imag), strict=True)
        )
        return torch.view_as_complex(torch.stack([real, imaginary], -1))

    def samples(self) -> Iterator[Sample]:
        yield Sample((numbers(3, 4), [1, 2]))
        yield Sample((numbers(3, 4), [1, -1, 0, 2], 1.5 - 2j))
        yield Sample((numbers(3, 4), [0, 0, 2, 1]), dynamic={0: {1: "n"}})
