"""`histogram` of all elements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._binning import edges, histogram
from onnxsmith.exporter.translations.base import Sample, Translation


class Histogram(Translation):
    """Counts, and the ends of the bins."""

    targets = ("aten::histogram.bin_ct", "aten::histogram.bins_tensor")

    def decompose(self, x: Any, bins: Any = 100, *, weight: Any = None, density: bool = False, **limits: Any) -> Any:
        points = x.reshape(-1, 1)
        ends = [bins.clone()] if isinstance(bins, torch.Tensor) else edges(points, [bins], limits.get("range"))
        return histogram(points, ends, weight, density), ends[0]

    def samples(self) -> Iterator[Sample]:
        count, given = self.targets
        x = torch.randn(4, 5)
        for density in (False, True):
            for weight in (None, torch.rand(4, 5)):
                options = {"weight": weight, "density": density}
                yield Sample((x, 7), {"range": [-1.0, 1.5], **options}, count)
                yield Sample((x, 20), options, count)
                yield Sample((x, torch.tensor([-1.0, -0.5, 0.0, 2.0])), options, given)
        yield Sample((torch.full((3,), 2.0), 4), {}, count)
        yield Sample((torch.randn(9, dtype=torch.float64), 4), {}, count)
        yield Sample((torch.tensor(0.3), 4), {}, count)
