"""Samples regions of images and volumes.

The regions of torchvision's position-sensitive operators are rows of image number, left, top, right and bottom.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op


def own_channels(every: Any) -> Any:
    """Keeps for each bin its own channels: [regions, channels / bins, height, width] from [regions, channels, height,
    width]. Channels are ordered by result channel, then by bin."""
    count, channels, height, width = every.shape
    bins = height * width
    by_bin = every.reshape(count, channels // bins, bins, bins)
    return by_bin.diagonal(dim1=2, dim2=3).reshape(count, channels // bins, height, width)


def channels_of_bins(every: Any) -> Any:
    """Returns the number of the channel that each bin is computed from, as int32."""
    count, channels, height, width = every.shape
    numbers = torch.arange(channels, dtype=torch.int32).reshape(1, -1, height, width)
    return numbers.expand(count, channels // (height * width), height, width)


def regions(count: int, size: float) -> torch.Tensor:
    """Returns example regions in two images of this size, some of them beyond the border: [count, 5]."""
    rng = torch.Generator().manual_seed(0)
    corner, sides = torch.rand(count, 2, generator=rng) * size * 0.7, torch.rand(count, 2, generator=rng) * size * 0.5
    number = torch.randint(0, 2, (count, 1), generator=rng).to(torch.float32)
    return torch.cat([number, corner, corner + sides], 1)


class PsRoiAlign(Translation, targets="torchvision::ps_roi_align", library="torchvision"):
    """Computes `torchvision.ops.ps_roi_align`, averages in bins of regions, by RoiAlign of every channel.

    Each bin then keeps its own channels. The sampling points are those of `roi_align(aligned=True)`.
    """

    def decompose(self, x: Any, rois: Any, scale: float, height: int, width: int, sampling: int) -> Any:
        every = torch.ops.torchvision.roi_align(x, rois, scale, height, width, sampling, True)
        return own_channels(every), channels_of_bins(every)

    def samples(self) -> Iterator[Sample]:
        x = torch.rand(2, 12, 9, 8)
        for sampling in (2, -1):
            yield Sample((x, regions(5, 9), 1.0, 3, 2, sampling))
        yield Sample((x, regions(4, 18), 0.5, 2, 2, 3), dynamic={0: {2: "h", 3: "w"}, 1: {0: "n"}})


class PsRoiPool(Translation, targets="torchvision::ps_roi_pool", library="torchvision"):
    """Computes `torchvision.ops.ps_roi_pool`, means over the cells of bins of regions, by two matrix products.

    The matrices of zeros and ones say which rows and columns of cells belong to a bin. Each bin keeps its own channels.
    As in torchvision's kernel, corners are rounded half away from zero, a region is at least one cell, and bins end
    before the last row and column of the image.
    """

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
    """Returns whether a cell along one axis belongs to a bin: [regions, bins, cells]."""
    length = (end - start).clamp(min=1)[:, None] / bins
    number = torch.arange(bins, dtype=start.dtype)
    first = (torch.floor(number * length) + start[:, None]).clamp(min=0)
    last = (torch.ceil((number + 1) * length) + start[:, None]).clamp(min=0)
    cell = torch.arange(size, dtype=start.dtype)
    inside = cell < size - 1
    return (cell >= first[:, :, None]) & (cell < last[:, :, None]) & inside


class GridSampler3d(Translation, targets="aten::grid_sampler_3d"):
    """Computes `grid_sampler_3d`, a volume sampled at the points of a grid, by GridSample, which takes volumes from
    opset 20."""

    def decompose(self, x: Any, grid: Any, interpolation: int, padding: int, align_corners: bool) -> Any:
        shape = [*x.shape[:2], *grid.shape[1:4]]
        mode, padding_mode = ("linear", "nearest")[interpolation], ("zeros", "border", "reflection")[padding]
        return onnx_op(
            "GridSample", x, grid, shape=shape, version=20, mode=mode, padding_mode=padding_mode,
            align_corners=int(align_corners),
        )  # fmt: skip

    def samples(self) -> Iterator[Sample]:
        for interpolation in (0, 1):
            for padding in (0, 1, 2):
                for align in (False, True):
                    grid = torch.rand(2, 3, 4, 5, 3) * 2.6 - 1.3
                    yield Sample((torch.randn(2, 2, 4, 5, 6), grid, interpolation, padding, align))
        dynamic = {0: {0: "n", 2: "depth"}, 1: {0: "n", 3: "width"}}
        yield Sample((torch.randn(2, 2, 4, 5, 6), grid, 0, 0, False), dynamic=dynamic)
