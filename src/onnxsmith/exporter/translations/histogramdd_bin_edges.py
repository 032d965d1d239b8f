"""The ends of the bins of `histogramdd`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._binning import edges
from onnxsmith.exporter.translations.base import Sample, Translation


class HistogramddBinEdges(Translation):
    """One tensor for each coordinate."""

    targets = ("aten::_histogramdd_bin_edges",)

    def decompose(self, x: Any, bins: Any, *, weight: Any = None, density: bool = False, **limits: Any) -> Any:
        del weight, density
        return edges(x.reshape(-1, x.shape[-1]), bins, limits.get("range"))

    def samples(self) -> Iterator[Sample]:
        yield Sample((torch.randn(4, 5, 2), [3, 4]))
        yield Sample((torch.randn(4, 2), [3, 4]), {"range": [-1.0, 1.5, 0.0, 2.0]})
