"""Quantisation must be symmetric."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.targets.profiles.condition_result import Finding, refused, unknown
from onnxsmith.targets.profiles.node_facts import Subject
from onnxsmith.targets.profiles.rules.base import GraphRule


@dataclass(frozen=True)
class SymmetricQuantisation(GraphRule):
    """The zero points of QuantizeLinear and DequantizeLinear must be 0.

    A zero point that is left out is 0. `uint8 = false` also refuses the dtype uint8, with any zero point.

    Source: onnx-tensorrt's operators.md, rows QuantizeLinear and DequantizeLinear; its list of quantised types (INT8,
    INT4, FP8, FP4) has no UINT8.
    """

    anchor = ("QuantizeLinear", "DequantizeLinear")
    source = "https://github.com/onnx/onnx-tensorrt/blob/main/docs/operators.md"

    uint8: bool = True

    def judge(self, subject: Subject) -> Finding | None:
        quantised = next(iter(subject.results if subject.node.op_type == "QuantizeLinear" else subject.operands), None)
        if quantised is not None and quantised.dtype == "uint8" and not self.uint8:
            return refused(f"{quantised.name} is uint8; quantised tensors must be int8", self.source)
        for slot in (*subject.named("y_zero_point"), *subject.named("x_zero_point")):
            array = subject.array(slot)
            if array is None:
                return unknown(f"{slot.name} is not constant, so it may differ from 0", self.source)
            if array.astype("float32").any():
                return refused(f"{slot.name} is not 0", self.source)
        if quantised is not None and quantised.dtype is None and not self.uint8:
            return unknown(f"the dtype of {quantised.name} is not known", self.source)
        return None
