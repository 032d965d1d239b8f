"""Operands of the same type variable must have the same dtype."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.targets.profiles.condition_result import Finding, refused, unknown
from onnxsmith.targets.profiles.node_facts import Subject
from onnxsmith.targets.profiles.rules.base import GraphRule


@dataclass(frozen=True)
class StrongTyping(GraphRule):
    """Operands and results that share a type variable in the operator's schema must have the same dtype.

    A strongly typed network takes the types of the file and never converts an operand.

    Source: TensorRT, "Migrating from TensorRT 10.x to 11.x", section "Strongly Typed Networks Are Now Required".
    """

    source = "https://docs.nvidia.com/deeplearning/tensorrt/11.4.0/api/migration/tensorrt-10x-to-11x.html"

    def judge(self, subject: Subject) -> Finding | None:
        if subject.schema is None:
            return unknown(f"the schema of {subject.name} is not known, so its dtypes cannot be compared", self.source)
        first: dict[str, tuple[str, str]] = {}
        doubt = None
        for slot in subject.slots:
            if slot.formal is None or not slot.formal.type or slot.formal.mixed:
                continue
            dtype = slot.dtype
            if dtype is None:
                doubt = doubt or unknown(f"the dtype of {slot.name} is not known", self.source)
                continue
            name, known = first.setdefault(slot.formal.type, (slot.name, dtype))
            if known != dtype:
                return refused(f"{name} is {known} and {slot.name} is {dtype}; both must have one dtype", self.source)
        return doubt
