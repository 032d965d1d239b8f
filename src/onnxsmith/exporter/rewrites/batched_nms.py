"""Traces torchvision's `batched_nms` without its branches on the number of boxes."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite


class BatchedNms(Rewrite):
    """Shifts the boxes of each class so that classes do not overlap, as torchvision does for up to 1000 boxes. For more
    boxes torchvision goes class by class, with the same result up to the rounding of coordinates. This code also works
    for no boxes. The function's code is replaced, so that every file that imported the function uses it."""

    title = "torchvision's batched_nms shifts the boxes of each class apart, for any number of boxes"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("torchvision.ops.boxes")
        function = getattr(library, "batched_nms", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _batched.__code__
        return False


def _batched(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    """Boxes [N, 4], scores and classes [N] → indices of the kept boxes. Must not use this module's globals: its code
    replaces another function's code."""
    import torch

    lowest = boxes.new_full((1,), torch.finfo(boxes.dtype).min)
    largest = torch.cat([boxes.reshape(-1), lowest]).max()
    apart = idxs.to(boxes) * (largest + 1)
    return torch.ops.torchvision.nms(boxes + apart[:, None], scores, iou_threshold)
