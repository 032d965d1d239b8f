"""Takes the pixel whose left edge is nearest, where ONNX's Resize may take another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from onnxsmith.exporter.translations._resizing import output_sizes
from onnxsmith.exporter.translations.base import Sample, Translation

_MOST = 2048
"""Pixels that are looked at where the size is open. A choice: a border between two pixels comes back periodically, and
a factor with two digits has met one by then."""


class Nearest(Translation):
    """Result pixel i is input pixel ⌊i · step⌋, where the step is the ratio of the sizes, or 1 / factor, in float32.
    Runtimes divide by the scale instead, which rounds to another pixel on a border between two: 14 to 20 has some, a
    whole factor has none. PyTorch's own translation stays where both are known to agree, and where an open size
    follows from the other, as the levels of a pyramid do; else each pixel is looked up by PyTorch's formula."""

    axes: ClassVar[int]
    """How many axes are resized."""

    def decompose(self, x: Any, output_size: Any, factors: Any = None, *, scale_factors: Any = None) -> Any:
        factors = list(factors or scale_factors or ()) or None
        sizes = output_sizes(x, output_size, factors)
        steps = list(zip(x.shape[-self.axes :], sizes, factors or [None] * self.axes, strict=True))
        return NotImplemented if all(agree(*step) for step in steps) else looked_up(x, steps)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, *(14, 26, 28)[: self.axes])
        for size in ((20, 17, 5), (28, 52, 56)):
            for dynamic in ({}, {0: {0: "n", 2: "l"}}):
                yield Sample((x, list(size[: self.axes]), None), dynamic=dynamic)
        for factors in ((2.0, 3.0, 2.0), (1.3, 0.7, 0.3)):
            for dynamic in ({}, {0: {0: "n", 2: "l"}}):
                yield Sample((x, None, list(factors[: self.axes])), dynamic=dynamic)


Step = tuple[Any, Any, float | None]
"""The length of an axis before and after, and the factor if one is given."""


def looked_up(x: Any, steps: Sequence[Step], shift: float = 0.0) -> Any:
    """Takes the input pixel ⌊(i + shift) · step⌋ for each result pixel i, in float32 as PyTorch computes it."""
    for axis, (length, count, factor) in enumerate(steps):
        long, short = (torch.full((), size, dtype=torch.float32) for size in (length, count))
        step = torch.full((), 1 / factor, dtype=torch.float32) if factor is not None else long / short
        places = ((torch.arange(count, dtype=torch.float32) + shift) * step).floor()
        x = x.index_select(axis - len(steps), torch.minimum(places, long - 1).to(torch.int64))
    return x


def agree(length: Any, count: Any, factor: float | None, shift: float = 0.0) -> bool:
    """Whether float32 gives the same pixels by the formula of PyTorch and by that of ONNX; of open sizes, whether one
    follows from the other."""
    known = isinstance(count, int) and isinstance(length, int)
    if factor is None and not known:
        return bool(_symbols(length) & _symbols(count))
    half = np.float32(shift)
    places = np.arange(count if isinstance(count, int) else _MOST, dtype=np.float32) + half
    step = np.float32(1 / factor) if factor is not None else np.float32(length) / np.float32(count)
    scale = np.float32(factor) if factor is not None else np.float32(count) / np.float32(length)
    return bool((np.floor(places * step) == np.floor(places / scale - half + half)).all())


def _symbols(size: Any) -> set[Any]:
    return set(size.node.expr.free_symbols) if isinstance(size, torch.SymInt) else set()
