"""Traces torchvision's detectors with any number of boxes and with images of any sizes."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite


class BatchedImages(Rewrite):
    """Traces torchvision's batch of images of different sizes with sizes that stay dynamic.

    Pads each image with zeros to the largest sides of all, rounded up to a multiple of `size_divisible`. torchvision
    turns the sides into Python numbers, which a trace fixes. The function's code is replaced.
    """

    title = "torchvision's detectors pad their images to sides that follow the sizes"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("torchvision.models.detection.transform")
        function = getattr(getattr(library, "GeneralizedRCNNTransform", None), "batch_images", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _padded_images.__code__
        return False


def _padded_images(self: Any, images: Any, size_divisible: int = 32) -> Any:
    """Returns the padded images [N, channels, height, width] of images [channels, height, width]. Must not use this
    module's globals: its code replaces another function's code."""
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


class BatchedNms(Rewrite):
    """Traces torchvision's `batched_nms` without its branches on the number of boxes.

    Shifts the boxes of each class so that classes do not overlap, as torchvision does for up to 1000 boxes. For more
    boxes torchvision goes class by class, with the same result up to the rounding of coordinates. This code also works
    for no boxes. The function's code is replaced, so that every file that imported the function uses it.
    """

    title = "torchvision's batched_nms shifts the boxes of each class apart, for any number of boxes"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("torchvision.ops.boxes")
        function = getattr(library, "batched_nms", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _shifted_nms.__code__
        return False


def _shifted_nms(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    """Returns the indices of the kept boxes from boxes [N, 4], scores and classes [N]. Must not use this module's
    globals: its code replaces another function's code."""
    import torch

    # without boxes, `max` of no elements would fail
    lowest = boxes.new_full((1,), torch.finfo(boxes.dtype).min)
    largest = torch.cat([boxes.reshape(-1), lowest]).max()
    apart = idxs.to(boxes) * (largest + 1)
    return torch.ops.torchvision.nms(boxes + apart[:, None], scores, iou_threshold)


class PastedMasks(Rewrite):
    """Traces torchvision's pasting of object masks into the image without its loop over the objects.

    Bilinear resizing is a product with one matrix for the rows and one for the columns. With zeros for positions
    outside the box, the two products also paste, for any number of objects at once. The function's code is replaced, so
    that every file that imported the function uses it.
    """

    title = "torchvision's masks are pasted into the image by two matrix products"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("torchvision.models.detection.roi_heads")
        function = getattr(library, "paste_masks_in_image", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _pasted.__code__
        return False


def _pasted(masks: Any, boxes: Any, img_shape: Any, padding: int = 1) -> Any:
    """Returns [N, 1, height, width] from masks [N, 1, M, M] and boxes [N, 4]. Must not use this module's globals: its
    code replaces another function's code, whose file has `expand_masks` and `expand_boxes`."""
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
