"""`torchvision.ops.ps_roi_pool`: means over the cells of bins of regions, each bin from channels of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._regions import channels_of_bins, own_channels, regions
from onnxsmith.exporter.translations.base import Sample, Translation


class PsRoiPool(Translation):
    """The sum over a bin is a product with a matrix of zeros and ones for its rows, and one for its columns.

    As in torchvision's kernel, corners are rounded half away from zero, a region is at least one cell, and bins end
    before the last row and column of the image.
    """

    targets = ("torchvision::ps_roi_pool",)
    library = "torchvision"

    def decompose(self, x: Any, rois: Any, scale: float, height: int, width: int) -> Any:
        corners = rois[:, 1:] * scale
        corners = torch.sign(corners) * torch.floor(corners.abs() + 0.5)
        rows = _cells(corners[:, 1], corners[:, 3], height, x.shape[2]).to(x.dtype)
        columns = _cells(corners[:, 0], corners[:, 2], width, x.shape[3]).to(x.dtype)
        images = x.index_select(0, rois[:, 0].to(torch.int64))
        sums = rows[:, None] @ images @ columns[:, None].transpose(2, 3)
        counts = rows.sum(2)[:, None, :, None] * columns.sum(2)[:, None, None, :]
        every = sums / counts.clamp(min=1)  # the sum over an empty bin is 0
        return own_channels(every), channels_of_bins(every)

    def samples(self) -> Iterator[Sample]:
        x = torch.rand(2, 12, 9, 8)
        yield Sample((x, regions(5, 9), 1.0, 3, 2))
        yield Sample((x, regions(5, 60), 0.5, 2, 2))
        yield Sample((x, regions(4, 18), 0.5, 2, 2), dynamic={0: {2: "h", 3: "w"}, 1: {0: "n"}})


def _cells(start: Any, end: Any, bins: int, size: Any) -> Any:
    """[regions, bins, cells]: whether a cell along one axis belongs to a bin."""
    length = (end - start).clamp(min=1)[:, None] / bins
    number = torch.arange(bins, dtype=start.dtype)
    first = (torch.floor(number * length) + start[:, None]).clamp(min=0)
    last = (torch.ceil((number + 1) * length) + start[:, None]).clamp(min=0)
    cell = torch.arange(size, dtype=start.dtype)
    inside = cell < size - 1
    return (cell >= first[:, :, None]) & (cell < last[:, :, None]) & inside
