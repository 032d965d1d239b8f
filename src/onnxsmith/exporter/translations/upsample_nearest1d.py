"""`upsample_nearest1d`: the nearest pixel along the last axis."""

from __future__ import annotations

from onnxsmith.exporter.translations._nearest import Nearest


class UpsampleNearest1d(Nearest):
    """A Resize of ONNX, or a lookup of each pixel."""

    targets = ("aten::upsample_nearest1d.vec",)
    axes = 1
