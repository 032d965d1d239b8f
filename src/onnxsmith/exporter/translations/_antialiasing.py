"""Resizes images with an antialiasing filter."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from onnxsmith.exporter.translations.base import Sample, Translation


class Antialiased(Translation):
    """Each result pixel is a weighted mean of input pixels. The weight is `kernel` of the distance to the result
    pixel's centre in the input; if the step is longer than 1, distances are divided by it. Along each axis this is a
    matrix product.

    The step is 1 / scale if a scale is given, otherwise the ratio of the sizes; with aligned corners, the ratio of the
    sizes less 1.
    """

    reach: ClassVar[int]

    @abstractmethod
    def kernel(self, distance: Any) -> Any:
        """The weight at a distance of 0 or more."""

    def decompose(self, x: Any, output_size: Any, align_corners: bool, *given: Any, **named: Any) -> Any:
        factors = given[0] if given and not isinstance(given[0], float) else given
        factors = named.get("scale_factors", factors) or [named.get("scales_h"), named.get("scales_w")]
        factors = list(factors) + [None] * (2 - len(factors))
        sizes = x.shape[-2:]
        if output_size is None:
            output_size = [int(n * factor) for n, factor in zip(sizes, factors, strict=True)]
        height, width = (
            self._weights(n, count, align_corners, factor, x.dtype)
            for n, count, factor in zip(sizes, output_size, factors, strict=True)
        )
        return height @ (x @ width.transpose(0, 1))

    def _weights(self, length: Any, count: Any, align_corners: bool, factor: float | None, dtype: torch.dtype) -> Any:
        """The matrix of weights along one axis, [count, length]."""
        if align_corners:
            step = (length - 1) / (count - 1) if count > 1 else 0.0
        else:
            step = 1 / factor if factor else length / count
        stretch = step if step >= 1 else 1.0
        centre = (torch.arange(count, dtype=dtype) + 0.5) * step
        place = torch.arange(length, dtype=dtype) + 0.5
        weight = self.kernel((place - centre.unsqueeze(1)).abs() / stretch)
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
        yield Sample((x, [4, 5], False, None), {}, self.targets[1], {0: {0: "n"}})
