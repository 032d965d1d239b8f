"""No tensor may be empty."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.targets.profiles.condition_result import Finding, refused, unknown
from onnxsmith.targets.profiles.node_facts import Subject
from onnxsmith.targets.profiles.rules.base import GraphRule


@dataclass(frozen=True)
class NoZeroSize(GraphRule):
    """No operand or result may have a dimension of size 0.

    A symbolic dimension may be 0, so it cannot be judged.

    Source: onnxruntime's table of its CoreML execution provider, row `Slice` ("Empty slice is not supported").
    """

    source = "https://onnxruntime.ai/docs/execution-providers/CoreML-ExecutionProvider.html"

    def judge(self, subject: Subject) -> Finding | None:
        doubt = None
        for slot in subject.slots:
            if slot.dims is None:
                doubt = doubt or unknown(f"the shape of {slot.name} is not known, so it may be empty", self.source)
            elif 0 in slot.dims:
                return refused(f"{slot.name} is empty: its shape is {list(slot.dims)}", self.source)
            elif not slot.is_static:
                doubt = doubt or unknown(f"{slot.name} may be empty: a dimension is not a fixed size", self.source)
        return doubt
