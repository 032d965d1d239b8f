"""`_upsample_bilinear2d_aa`: a picture resized with a filter as wide as what it shrinks by."""

from __future__ import annotations

from typing import Any

from onnxsmith.exporter.translations._antialiasing import Antialiased


class UpsampleBilinear2dAa(Antialiased):
    """A triangle, 1 at its centre and 0 one place away."""

    targets = ("aten::_upsample_bilinear2d_aa.default", "aten::_upsample_bilinear2d_aa.vec")
    reach = 1
    mode = "linear"

    def kernel(self, distance: Any) -> Any:
        return (1 - distance).clamp(min=0)
