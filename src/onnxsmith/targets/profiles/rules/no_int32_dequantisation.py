"""DequantizeLinear must not read int32."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.targets.profiles.condition_result import Finding, refused, unknown
from onnxsmith.targets.profiles.node_facts import Subject
from onnxsmith.targets.profiles.rules.base import GraphRule


@dataclass(frozen=True)
class NoInt32Dequantisation(GraphRule):
    """DequantizeLinear must not read int32, the dtype in which quantisers store the bias of a convolution.

    Source: onnx-tensorrt's operators.md, row DequantizeLinear (INT8, FP8, FP4, INT4).
    """

    anchor = ("DequantizeLinear",)
    source = "https://github.com/onnx/onnx-tensorrt/blob/main/docs/operators.md"

    def judge(self, subject: Subject) -> Finding | None:
        for slot in subject.operands[:1]:
            if slot.dtype is None:
                return unknown(f"the dtype of {slot.name} is not known", self.source)
            if slot.dtype == "int32":
                return refused(f"{slot.name} is int32: keep the bias of a convolution in floating point", self.source)
        return None
