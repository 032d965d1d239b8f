"""`grid_sampler_3d`: a volume read where a grid says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations.base import Sample, Translation, onnx_op


class GridSampler3d(Translation):
    """ONNX's GridSample, which takes volumes from opset 20 on."""

    targets = ("aten::grid_sampler_3d",)

    def decompose(self, x: Any, grid: Any, interpolation: int, padding: int, align_corners: bool) -> Any:
        return onnx_op(
            "GridSample",
            x,
            grid,
            shape=[*x.shape[:2], *grid.shape[1:4]],
            version=20,
            mode=("linear", "nearest")[interpolation],
            padding_mode=("zeros", "border", "reflection")[padding],
            align_corners=int(align_corners),
        )

    def samples(self) -> Iterator[Sample]:
        for interpolation in (0, 1):
            for padding in (0, 1, 2):
                for align in (False, True):
                    grid = torch.rand(2, 3, 4, 5, 3) * 2.6 - 1.3
                    yield Sample((torch.randn(2, 2, 4, 5, 6), grid, interpolation, padding, align))
        dynamic = {0: {0: "n", 2: "depth"}, 1: {0: "n", 3: "width"}}
        yield Sample((torch.randn(2, 2, 4, 5, 6), grid, 0, 0, False), dynamic=dynamic)
