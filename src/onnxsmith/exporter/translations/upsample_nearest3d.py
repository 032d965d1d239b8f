"""`upsample_nearest3d`: the nearest pixel along the last three axes."""

from __future__ import annotations

from onnxsmith.exporter.translations._nearest import Nearest


class UpsampleNearest3d(Nearest):
    """A Resize of ONNX, or a lookup of each pixel."""

    targets = ("aten::upsample_nearest3d.vec",)
    axes = 3
