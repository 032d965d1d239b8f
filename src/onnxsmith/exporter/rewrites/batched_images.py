"""Traces torchvision's batch of images of different sizes with sizes that stay dynamic."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite


class BatchedImages(Rewrite):
    """Pads each image with zeros to the largest sides of all, rounded up to a multiple of `size_divisible`. torchvision
    turns the sides into Python numbers, which a trace fixes. The function's code is replaced."""

    title = "torchvision's detectors pad their images to sides that follow the sizes"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("torchvision.models.detection.transform")
        function = getattr(getattr(library, "GeneralizedRCNNTransform", None), "batch_images", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _batched.__code__
        return False


def _batched(self: Any, images: Any, size_divisible: int = 32) -> Any:
    """Images [channels, height, width] → [N, channels, height, width]. Must not use this module's globals: its code
    replaces another function's code."""
    import torch

    sides = []
    for axis in (1, 2):
        side = images[0].shape[axis]
        for image in images[1:]:
            side = torch.sym_max(side, image.shape[axis])  # type: ignore[no-untyped-call]
        sides.append((side + size_divisible - 1) // size_divisible * size_divisible)
    height, width = sides
    return torch.stack(
        [torch.nn.functional.pad(one, (0, width - one.shape[2], 0, height - one.shape[1])) for one in images]
    )
