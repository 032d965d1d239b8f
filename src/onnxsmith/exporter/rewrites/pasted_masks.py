"""Traces torchvision's pasting of object masks into the image without its loop over the objects."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite


class PastedMasks(Rewrite):
    """Bilinear resizing is a product with one matrix for the rows and one for the columns. With zeros for positions
    outside of the box, the two products also paste, for any number of objects at once. The function's code is replaced,
    so that every file that imported the function uses it."""

    title = "torchvision's masks are pasted into the image by two matrix products"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("torchvision.models.detection.roi_heads")
        function = getattr(library, "paste_masks_in_image", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _pasted.__code__
        return False


def _pasted(masks: Any, boxes: Any, img_shape: Any, padding: int = 1) -> Any:
    """Masks [N, 1, M, M] and boxes [N, 4] → [N, 1, height, width]. Must not use this module's globals: its code
    replaces another function's code, whose file has `expand_masks` and `expand_boxes`."""
    import torch

    masks, scale = expand_masks(masks, padding=padding)  # type: ignore[name-defined]  # noqa: F821
    boxes = expand_boxes(boxes, scale).to(dtype=torch.int64)  # type: ignore[name-defined]  # noqa: F821
    many = masks.shape[-1]
    sides = []
    for axis, size in ((1, img_shape[0]), (0, img_shape[1])):
        start, length = boxes[:, axis], (boxes[:, axis + 2] - boxes[:, axis] + 1).clamp(min=1)
        place = torch.arange(size, device=boxes.device)[None] - start[:, None]
        inside = (place >= 0) & (place < length[:, None]) & (place <= (boxes[:, axis + 2] - start)[:, None])
        # PyTorch's upsample_bilinear2d, align_corners=False
        ratio = torch.full_like(length, many).to(masks.dtype) / length.to(masks.dtype)
        at = ((place.to(masks.dtype) + 0.5) * ratio[:, None] - 0.5).clamp(min=0, max=many - 1)
        pixels = torch.arange(many, device=boxes.device).to(masks.dtype)
        weights = (1 - (at[..., None] - pixels).abs()).clamp(min=0)
        sides.append(weights * inside[..., None].to(masks.dtype))
    rows, columns = sides
    return (rows @ masks[:, 0] @ columns.transpose(1, 2))[:, None]
