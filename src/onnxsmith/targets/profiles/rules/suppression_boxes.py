"""NonMaxSuppression considers a limited number of boxes."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.targets.profiles.condition_result import Finding, unknown
from onnxsmith.targets.profiles.node_facts import Subject
from onnxsmith.targets.profiles.rules.base import GraphRule


@dataclass(frozen=True)
class SuppressionBoxes(GraphRule):
    """NonMaxSuppression considers the `most` boxes of highest score per batch item, and ignores the rest.

    More boxes are not refused, but the result may differ from ONNX's.

    Source: TensorRT's operator page of NMS, attribute `limit`: 2000 for the devices SM 5.3 and 6.2, else 5000.
    """

    anchor = ("NonMaxSuppression",)
    source = "https://docs.nvidia.com/deeplearning/tensorrt/latest/_static/operators/NMS.html"

    most: int = 5000

    def judge(self, subject: Subject) -> Finding | None:
        boxes = next(iter(subject.named("boxes")), None)
        dims = boxes.dims if boxes is not None else None
        count = dims[1] if dims is not None and len(dims) == 3 else None
        if not isinstance(count, int):
            return unknown(f"the number of boxes is not known; only {self.most} are considered", self.source)
        if count > self.most:
            return unknown(f"{count} boxes, of which only the {self.most} best are considered", self.source)
        return None
