"""Takes the nearest pixel, measured between centres."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch

from onnxsmith.exporter.translations._resizing import TAKEN, output_sizes, resized
from onnxsmith.exporter.translations.base import Sample, Translation, reaches

_MOST = 2048
"""Pixels that are looked at where the size is open. A choice: borders between two pixels come back periodically, and a
factor with two digits has met one by then."""


class NearestExact(Translation):
    """Result pixel i is input pixel ⌊(i + 1/2) · step⌋. In ONNX: the position (i + 1/2) · step - 1/2, rounded with
    halves up. On the border of two pixels, float rounding decides. If the two differ there for a known step,
    each pixel is looked up by PyTorch's formula. For open sizes without a factor they may differ, as in the mode
    `nearest`.
    """

    axes: ClassVar[int]
    """How many axes are resized."""

    def decompose(self, x: Any, output_size: Any, factors: Any = None, *, scale_factors: Any = None) -> Any:
        factors = list(factors or scale_factors or ()) or None
        sizes = output_sizes(x, output_size, factors)
        steps = list(zip(x.shape[-self.axes :], sizes, factors or [None] * self.axes, strict=True))
        if x.dtype in TAKEN and reaches(18) and all(_agree(*step) for step in steps):
            return resized(
                x, sizes, factors, mode="nearest", coordinate_transformation_mode="half_pixel",
                nearest_mode="round_prefer_ceil",
            )  # fmt: skip
        for axis, step in enumerate(steps):
            x = x.index_select(axis - self.axes, _places(*step))
        return x

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, *(12, 10, 8)[: self.axes])
        for size in ((7, 17, 5), (24, 5, 16), (1, 1, 1)):
            for dynamic in ({}, {0: {0: "n", 2: "l"}}):
                yield Sample((x, list(size[: self.axes]), None), dynamic=dynamic)
        for factors in ((2.0, 3.0, 2.0), (0.5, 0.25, 0.5), (1.3, 0.7, 0.3)):
            for dynamic in ({}, {0: {0: "n", 2: "l"}}):
                yield Sample((x, None, list(factors[: self.axes])), dynamic=dynamic)
        yield Sample((x.double(), [7, 17, 5][: self.axes], None))


def _places(length: Any, count: Any, factor: float | None) -> Any:
    """The input pixel of each result pixel along one axis, in float32 as PyTorch computes it."""
    long, short = (torch.full((), size, dtype=torch.float32) for size in (length, count))
    step = torch.full((), 1 / factor, dtype=torch.float32) if factor is not None else long / short
    places = ((torch.arange(count, dtype=torch.float32) + 0.5) * step).floor()
    return torch.minimum(places, long - 1).to(torch.int64)


def _agree(length: Any, count: Any, factor: float | None) -> bool:
    """Whether float32 gives the same pixels by the formula of PyTorch and by that of ONNX; True if nothing is known."""
    known = isinstance(count, int) and isinstance(length, int)
    if factor is None and not known:
        return True
    centres = np.arange(count if isinstance(count, int) else _MOST, dtype=np.float32) + np.float32(0.5)
    step = np.float32(1 / factor) if factor is not None else np.float32(length) / np.float32(count)
    scale = np.float32(factor) if factor is not None else np.float32(count) / np.float32(length)
    torchs = np.floor(centres * step)
    onnxs = np.floor(centres / scale - np.float32(0.5) + np.float32(0.5))
    return bool((torchs == onnxs).all())
