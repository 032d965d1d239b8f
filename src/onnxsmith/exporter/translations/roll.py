"""`roll` by a symbolic size, which an attribute of an ONNX node cannot hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Roll(Translation):
    """What comes to each place, looked up axis by axis: the element as many places before it, counted round. By numbers
    it is PyTorch's exporter's."""

    targets = ("aten::roll",)

    def decompose(self, x: Any, shifts: Sequence[Any], dims: Sequence[int] = ()) -> Any:
        if all(isinstance(shift, int) for shift in shifts):
            return NotImplemented
        if not dims:
            return self.decompose(x.reshape(-1), shifts, [0]).reshape(x.shape)
        for shift, dim in zip(shifts, dims, strict=True):
            back, size = (torch.full((), number, dtype=torch.int64) for number in (shift, x.shape[dim]))
            x = x.index_select(dim, (torch.arange(x.shape[dim]) - back) % size)
        return x

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(4, 5)
        yield Sample((x, [1, -2], [0, 1]))
        yield Sample((x, [3]))
        yield Sample((x,), dynamic={0: {0: "n", 1: "m"}}, around=shifted)
        yield Sample((x,), dynamic={0: {1: "m"}}, around=shifted_as_one)


def shifted(op: Any, x: torch.Tensor) -> torch.Tensor:
    """Half round along one axis, and back by a quarter along the other, as `fftshift` does."""
    found: torch.Tensor = op(x, [x.shape[0] // 2, -(x.shape[1] // 4)], [0, -1])
    return found


def shifted_as_one(op: Any, x: torch.Tensor) -> torch.Tensor:
    """All elements in a row, without an axis."""
    found: torch.Tensor = op(x, [x.shape[1] + 1])
    return found
