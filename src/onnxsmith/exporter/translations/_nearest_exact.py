"""Takes the nearest pixel, measured between centres."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations._nearest import agree, looked_up
from onnxsmith.exporter.translations._resizing import TAKEN, output_sizes, resized
from onnxsmith.exporter.translations.base import Sample, Translation, reaches

_HALF = 0.5


class NearestExact(Translation):
    """Result pixel i is input pixel ⌊(i + 1/2) · step⌋. In ONNX: the position (i + 1/2) · step - 1/2, rounded with
    halves up. On the border of two pixels, float rounding decides. A Resize stays where the two are known to agree and
    where an open size follows from the other, as in the mode `nearest`; else each pixel is looked up by PyTorch's
    formula.
    """

    axes: ClassVar[int]
    """How many axes are resized."""

    def decompose(self, x: Any, output_size: Any, factors: Any = None, *, scale_factors: Any = None) -> Any:
        factors = list(factors or scale_factors or ()) or None
        sizes = output_sizes(x, output_size, factors)
        steps = list(zip(x.shape[-self.axes :], sizes, factors or [None] * self.axes, strict=True))
        if x.dtype in TAKEN and reaches(18) and all(agree(*step, _HALF) for step in steps):
            return resized(
                x, sizes, factors, mode="nearest", coordinate_transformation_mode="half_pixel",
                nearest_mode="round_prefer_ceil",
            )  # fmt: skip
        return looked_up(x, steps, _HALF)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, *(12, 10, 8)[: self.axes])
        for size in ((7, 17, 5), (24, 5, 16), (1, 1, 1)):
            for dynamic in ({}, {0: {0: "n", 2: "l"}}):
                yield Sample((x, list(size[: self.axes]), None), dynamic=dynamic)
        for factors in ((2.0, 3.0, 2.0), (0.5, 0.25, 0.5), (1.3, 0.7, 0.3)):
            for dynamic in ({}, {0: {0: "n", 2: "l"}}):
                yield Sample((x, None, list(factors[: self.axes])), dynamic=dynamic)
        yield Sample((x.double(), [7, 17, 5][: self.axes], None))
