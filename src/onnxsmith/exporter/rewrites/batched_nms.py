"""torchvision's `batched_nms` asks whether there is a box, and how many there are, before it suppresses any."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import FunctionType
from typing import Any

import torch

from onnxsmith.exporter.rewrites.base import Rewrite


class BatchedNms(Rewrite):
    """Boxes of each class are moved to a place of their own, as torchvision does it for up to 1000 boxes; for more it
    goes class by class, which comes to the same up to the rounding of coordinates. Here it holds for no box, too. The
    function gets other code, so that every file that has imported it is served."""

    title = "torchvision's batched_nms moves the boxes of each class apart, however many there are"

    def apply(self, module: torch.nn.Module, stack: ExitStack) -> bool:
        library: Any = sys.modules.get("torchvision.ops.boxes")
        function = getattr(library, "batched_nms", None)
        if isinstance(function, FunctionType):
            stack.callback(setattr, function, "__code__", function.__code__)
            function.__code__ = _batched.__code__
        return False


def _batched(boxes: Any, scores: Any, idxs: Any, iou_threshold: float) -> Any:
    """With no name of this file in it: it runs in the place of another function. Boxes [N, 4], scores and classes [N]
    → numbers of those kept."""
    import torch

    lowest = boxes.new_full((1,), torch.finfo(boxes.dtype).min)
    largest = torch.cat([boxes.reshape(-1), lowest]).max()
    apart = idxs.to(boxes) * (largest + 1)
    return torch.ops.torchvision.nms(boxes + apart[:, None], scores, iou_threshold)
