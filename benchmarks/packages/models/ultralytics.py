"""ultralytics: detection, segmentation, poses, classification, with the head as its own export sets it."""

from __future__ import annotations

from typing import Any

import torch
from ultralytics.nn import tasks

from packages.case import Case, image, lively


def cases() -> list[Case]:
    """Batch, height and width are dynamic, as with its option `dynamic`."""
    return [
        _made("yolov8n", tasks.DetectionModel),
        _made("yolo11n-seg", tasks.SegmentationModel),
        _made("yolov8n-pose", tasks.PoseModel),
        _made("yolo11n-cls", tasks.ClassificationModel),
    ]


def _made(name: str, kind: Any) -> Case:
    def build() -> torch.nn.Module:
        model = lively(kind(f"{name}.yaml", verbose=False)).eval().fuse(verbose=False)
        for module in model.modules():
            if hasattr(module, "export"):
                module.export, module.dynamic, module.format = True, True, "onnx"
        made: torch.nn.Module = model
        return made

    return image(name, build, 64, 32)
