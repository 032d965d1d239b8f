"""`_upsample_nearest_exact1d`: the nearest pixel along the last axis."""

from __future__ import annotations

from onnxsmith.exporter.translations._nearest_exact import NearestExact


class UpsampleNearestExact1d(NearestExact):
    """One Resize of ONNX, or a lookup of each pixel."""

    targets = ("aten::_upsample_nearest_exact1d.vec",)
    axes = 1
