"""`histogramdd` of points of several coordinates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._binning import edges, histogram
from onnxsmith.exporter.translations.base import Sample, Translation


class Histogramdd(Translation):
    """The counts, by numbers of bins or by their ends; PyTorch asks for the ends by another operator."""

    targets = ("aten::_histogramdd_from_bin_cts", "aten::_histogramdd_from_bin_tensors")

    def decompose(self, x: Any, bins: Any, *, weight: Any = None, density: bool = False, **limits: Any) -> Any:
        points = x.reshape(-1, x.shape[-1])
        ends = list(bins) if isinstance(bins[0], torch.Tensor) else edges(points, bins, limits.get("range"))
        return histogram(points, ends, weight, density)

    def samples(self) -> Iterator[Sample]:
        counts, given = self.targets
        x = torch.randn(4, 5, 2)
        for density in (False, True):
            for weight in (None, torch.rand(4, 5)):
                options = {"weight": weight, "density": density}
                yield Sample((x, [3, 4]), {"range": [-1.0, 1.5, -2.0, 2.0], **options}, counts)
                yield Sample((x, [3, 4]), options, counts)
                yield Sample((x, [torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([-1.0, 1.0])]), options, given)
        yield Sample((torch.randn(7, 3, dtype=torch.float64), [2, 3, 4]), {}, counts)
