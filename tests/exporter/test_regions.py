"""Position-sensitive pooling of torchvision, without torchvision: against loops that say what its kernels compute."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from onnxsmith.exporter.translations.region_sampling import PsRoiPool, channels_of_bins, own_channels, regions
from onnxsmith.graph.files.text import from_text
from onnxsmith.verification.inputs.roles import role
from tests.rewrites import head


def away(value: float) -> int:
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def pooled(x: torch.Tensor, rois: torch.Tensor, scale: float, bins: tuple[int, int]) -> torch.Tensor:
    height, width = x.shape[2:]
    found = torch.zeros(len(rois), x.shape[1] // (bins[0] * bins[1]), *bins)
    for place in np.ndindex(*found.shape):
        region, result, row, column = place
        image = int(rois[region, 0])
        left, top, right, bottom = (away(float(one)) for one in rois[region, 1:] * scale)
        cell_height, cell_width = (max(bottom - top, 1) / bins[0], max(right - left, 1) / bins[1])

        def limits(number: int, size: float, start: int, most: int) -> range:
            ends = math.floor(number * size) + start, math.ceil((number + 1) * size) + start
            return range(*(min(max(one, 0), most - 1) for one in ends))

        rows, columns = limits(row, cell_height, top, height), limits(column, cell_width, left, width)
        channel = (result * bins[0] + row) * bins[1] + column
        if rows and columns:
            found[place] = x[image, channel, rows.start : rows.stop, columns.start : columns.stop].mean()
    return found


@pytest.mark.parametrize(("size", "scale", "bins"), [(9, 1.0, (3, 2)), (60, 0.5, (2, 2)), (4, 0.25, (2, 3))])
def test_pooling(size: float, scale: float, bins: tuple[int, int]) -> None:
    x, rois = torch.rand(2, 12, 9, 8), regions(6, size)
    found, channels = PsRoiPool().decompose(x, rois, scale, *bins)
    assert (found - pooled(x, rois, scale, bins)).abs().max() < 1e-6
    assert channels.shape == found.shape
    assert channels.dtype == torch.int32


def test_each_bin_keeps_its_own_channels() -> None:
    every = torch.arange(12)[None, :, None, None].expand(2, 12, 3, 2).to(torch.float32)
    assert torch.equal(own_channels(every), channels_of_bins(every).to(torch.float32))
    assert channels_of_bins(every)[0, 1].tolist() == [[6, 7], [8, 9], [10, 11]]


ALIGNED = """
p = Constant <value = int64[2] {1, 4}> () i, b = Split <axis = 1> (r, p) a = Constant <value = int64[1] {1}> ()
j = Squeeze(i, a) k = Cast <to = 7> (j) y = RoiAlign <output_height = 2, output_width = 2> (x, b, k)
"""


@pytest.mark.parametrize(
    "body",
    [
        ALIGNED,
        "z = Constant <value = int64 {0}> () i = Gather <axis = 1> (r, z) k = Cast <to = 7> (i) y = Gather(x, k)",
    ],
)
def test_regions_with_the_number_of_their_image_are_generated_inside_the_images(body: str) -> None:
    model = from_text(head(18) + f"g (float[2,3,9,8] x, float[n,5] r) => (float[n,3,h,w] y) {{ {body} }}")
    found = role(model.graph.inputs[1])
    assert found is not None
    assert found.kind == "numbered regions"
    assert found.shape == (2, 3, 9, 8)
