"""`_upsample_nearest_exact2d`: the nearest pixel along the last two axes."""

from __future__ import annotations

from onnxsmith.exporter.translations._nearest_exact import NearestExact


class UpsampleNearestExact2d(NearestExact):
    """One Resize of ONNX, or a lookup of each pixel."""

    targets = ("aten::_upsample_nearest_exact2d.vec",)
    axes = 2
