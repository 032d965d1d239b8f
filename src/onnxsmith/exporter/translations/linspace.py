"""`linspace` between ends that are tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Linspace(Translation):
    """From both ends to the middle, as PyTorch rounds: start + i·step in the first half, end - (n - 1 - i)·step in the
    second. Integers as the result, and ends that are numbers, are left to PyTorch's exporter."""

    targets = ("aten::linspace.Tensor_Tensor", "aten::linspace.Tensor_Scalar", "aten::linspace.Scalar_Tensor")

    def decompose(self, start: Any, end: Any, steps: int, *, dtype: torch.dtype | None = None, **_: Any) -> Any:
        dtype = dtype or torch.get_default_dtype()
        if not dtype.is_floating_point:
            return NotImplemented
        first, last = (
            one.to(dtype).reshape(1) if isinstance(one, torch.Tensor) else torch.full((1,), one, dtype=dtype)
            for one in (start, end)
        )
        if steps < 2:
            return first[:steps]
        step = (last - first) / (steps - 1)
        number = torch.arange(steps, dtype=dtype)
        return torch.where(number < steps // 2, first + step * number, last - step * (steps - 1 - number))

    def samples(self) -> Iterator[Sample]:
        start, end = torch.tensor(-1.5), torch.tensor(2.0)
        for steps in (0, 1, 2, 7, 50):
            yield Sample((start, end, steps))
        yield Sample((start, 2.0, 5), {"dtype": torch.float64}, "aten::linspace.Tensor_Scalar")
        yield Sample((-1, end, 5), {}, "aten::linspace.Scalar_Tensor")
        yield Sample((torch.tensor(3), torch.tensor(9), 4))
