"""`upsample_linear1d`: linear interpolation along the last axis."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from onnxsmith.exporter.translations._resizing import TAKEN, output_sizes, resized
from onnxsmith.exporter.translations.base import Sample, Translation, reaches


class UpsampleLinear1d(Translation):
    """One Resize of ONNX, as PyTorch's exporter writes it for two and three axes."""

    targets = ("aten::upsample_linear1d.default", "aten::upsample_linear1d.vec")

    def decompose(self, x: Any, output_size: Any, align_corners: bool, *given: Any, **named: Any) -> Any:
        if x.dtype not in TAKEN or not reaches(18):
            return NotImplemented
        found = given[0] if given else named.get("scale_factors", named.get("scales"))
        factors = [float(found)] if isinstance(found, float) else [float(one) for one in found or ()] or None
        mode = "align_corners" if align_corners else "half_pixel"
        sizes = output_sizes(x, output_size, factors)
        by = None if align_corners and output_size is not None else factors
        return resized(x, sizes, by, mode="linear", coordinate_transformation_mode=mode)

    def samples(self) -> Iterator[Sample]:
        x = torch.randn(2, 3, 12)
        for corners in (False, True):
            for size in ([7], [17], [1]):
                yield Sample((x, size, corners))
                yield Sample((x, size, corners, None), {}, self.targets[1], {0: {0: "n", 2: "l"}})
            for factor in (2.0, 0.5, 1.3):
                yield Sample((x, None, corners, [factor]), {}, self.targets[1], {0: {2: "l"}})
        yield Sample((x, [15], False, 1.3))
        yield Sample((x.double(), [7], False))
