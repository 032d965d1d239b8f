"""`torchvision.ops.ps_roi_align`: averages in the bins of regions, each bin from channels of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._regions import channels_of_bins, own_channels, regions
from onnxsmith.exporter.translations.base import Sample, Translation


class PsRoiAlign(Translation):
    """RoiAlign of every channel, of which each bin keeps its own channels. The sampling points are those of
    `roi_align(aligned=True)`."""

    targets = ("torchvision::ps_roi_align",)
    library = "torchvision"

    def decompose(self, x: Any, rois: Any, scale: float, height: int, width: int, sampling: int) -> Any:
        every = torch.ops.torchvision.roi_align(x, rois, scale, height, width, sampling, True)
        return own_channels(every), channels_of_bins(every)

    def samples(self) -> Iterator[Sample]:
        x = torch.rand(2, 12, 9, 8)
        for sampling in (2, -1):
            yield Sample((x, regions(5, 9), 1.0, 3, 2, sampling))
        yield Sample((x, regions(4, 18), 0.5, 2, 2, 3), dynamic={0: {2: "h", 3: "w"}, 1: {0: "n"}})
