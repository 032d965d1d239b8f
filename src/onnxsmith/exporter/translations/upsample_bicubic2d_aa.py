"""`_upsample_bicubic2d_aa`: a picture resized with a filter as wide as what it shrinks by."""

from __future__ import annotations

from typing import Any

import torch

from onnxsmith.exporter.translations._antialiasing import Antialiased


class UpsampleBicubic2dAa(Antialiased):
    """Cubic convolution with a = -1/2 (Keys, "Cubic convolution interpolation for digital image processing", 1981)."""

    targets = ("aten::_upsample_bicubic2d_aa.default", "aten::_upsample_bicubic2d_aa.vec")
    reach = 2
    mode = "cubic"

    def kernel(self, distance: Any) -> Any:
        near = (1.5 * distance - 2.5) * distance * distance + 1
        far = ((-0.5 * distance + 2.5) * distance - 4) * distance + 2
        return torch.where(distance < 1, near, torch.where(distance < 2, far, torch.zeros((), dtype=distance.dtype)))
