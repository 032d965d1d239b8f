"""`_upsample_nearest_exact3d`: the nearest pixel along the last three axes."""

from __future__ import annotations

from onnxsmith.exporter.translations._nearest_exact import NearestExact


class UpsampleNearestExact3d(NearestExact):
    """One Resize of ONNX, or a lookup of each pixel."""

    targets = ("aten::_upsample_nearest_exact3d.vec",)
    axes = 3
