"""Resizes images with an antialiasing filter."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations._resizing import TAKEN, output_sizes, resized
from onnxsmith.exporter.translations.base import Sample, Translation, reaches


class Antialiased(Translation):
    """Each result pixel is a weighted mean of input pixels. The weight is `kernel` of the distance to the result
    pixel's centre in the input; if the step is longer than 1, distances are divided by it. Along each axis this is a
    matrix product.

    The step is 1 / scale if a scale is given, otherwise the ratio of the sizes: ONNX's Resize with `antialias`. With
    aligned corners it is the ratio of the sizes less 1, which Resize does not know.
    """

    reach: ClassVar[int]
    mode: ClassVar[str]
    """The mode of Resize."""

    @abstractmethod
    def kernel(self, distance: Any) -> Any:
        """The weight at a distance of 0 or more."""

    def decompose(self, x: Any, output_size: Any, align_corners: bool, *given: Any, **named: Any) -> Any:
        factors = given[0] if given and not isinstance(given[0], float) else given
        factors = named.get("scale_factors", factors) or [named.get("scales_h"), named.get("scales_w")]
        factors = list(factors) + [None] * (2 - len(factors))
        scales = factors if all(factors) else None
        output_size = output_sizes(x, output_size, scales)
        if not align_corners and x.dtype in TAKEN and reaches(18):
            return resized(
                x, output_size, scales, mode=self.mode, coordinate_transformation_mode="half_pixel", antialias=1,
                exclude_outside=1, cubic_coeff_a=-0.5,
            )  # fmt: skip
        height, width = (
            self._weights(n, count, align_corners, factor, x.dtype)
            for n, count, factor in zip(x.shape[-2:], output_size, factors, strict=True)
        )
        return height @ (x @ width.transpose(0, 1))

    def _weights(self, length: Any, count: Any, align_corners: bool, factor: float | None, dtype: torch.dtype) -> Any:
        """The matrix of weights along one axis, [count, length]. Sizes are tensors, because a trace would decide by
        the example's."""
        long, short = (torch.full((), size, dtype=dtype) for size in (length, count))
        if align_corners:
            step = torch.where(short > 1, (long - 1) / (short - 1).clamp(min=1), torch.zeros((), dtype=dtype))
        else:
            step = torch.full((), 1 / factor, dtype=dtype) if factor else long / short
        centre = (torch.arange(count, dtype=dtype) + 0.5) * step
        place = torch.arange(length, dtype=dtype) + 0.5
        weight = self.kernel((place - centre.unsqueeze(1)).abs() / step.clamp(min=1))
        return weight / weight.sum(1, keepdim=True)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, 9, 8)
        for corners in (False, True):
            for size in ([4, 5], [12, 8], [1, 3]):
                yield Sample((x, size, corners))
        yield Sample((x, [4, 5], False, 0.5, 0.7))
        yield Sample((x, [16, 14], False, 1.8, 1.8))
        yield Sample((x.double(), [4, 5], False, 0.5, 0.7))
        yield Sample((x, None, False, [0.5, 0.7]), {}, self.targets[1])
        open_axes = {0: {0: "n", 2: "h", 3: "w"}}
        for corners in (False, True):
            yield Sample((x, [4, 12], corners, None), {}, self.targets[1], open_axes)
            yield Sample((x, None, corners, [0.5, 1.3]), {}, self.targets[1], open_axes)
        yield Sample((x, [4, 5], False, None), {}, self.targets[1], {0: {0: "n"}})
