"""`full` of complex numbers, which PyTorch's exporter has for real ones only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class ComplexFull(Translation):
    """Each part by itself."""

    targets = ("aten::full",)

    def decompose(self, size: Sequence[Any], fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
        given = dtype or (torch.complex64 if isinstance(fill_value, complex) else None)
        if given is None or not given.is_complex:
            return NotImplemented
        return filled(size, fill_value, given)

    def samples(self) -> Iterator[Sample]:
        yield Sample(([2, 3], 1), {"dtype": torch.complex64})
        yield Sample(([3], 1.5 - 2j))
        yield Sample(([], 2.5), {"dtype": torch.complex128})
        yield Sample(([2, 0], 0), {"dtype": torch.complex64})
        yield Sample(([2, 3], 2))


def filled(size: Sequence[Any], value: Any, dtype: torch.dtype) -> torch.Tensor:
    """A complex tensor in which every element is `value`."""
    number = complex(value)
    parts = [torch.full(size, part, dtype=dtype.to_real()) for part in (number.real, number.imag)]
    return torch.view_as_complex(torch.stack(parts, -1))
