"""`upsample_nearest2d`: the nearest pixel along the last two axes."""

from __future__ import annotations

from onnxsmith.exporter.translations._nearest import Nearest


class UpsampleNearest2d(Nearest):
    """A Resize of ONNX, or a lookup of each pixel."""

    targets = ("aten::upsample_nearest2d.vec",)
    axes = 2
