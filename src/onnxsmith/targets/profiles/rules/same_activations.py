"""A bidirectional recurrent layer must have the same activations in both directions."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.targets.profiles.condition_result import Finding, refused, unknown
from onnxsmith.targets.profiles.node_facts import Subject
from onnxsmith.targets.profiles.rules.base import GraphRule


@dataclass(frozen=True)
class SameActivations(GraphRule):
    """A bidirectional RNN, GRU or LSTM must have the same activations forward and backward.

    Activations that are left out have their defaults, which are the same in both directions.

    Source: onnx-tensorrt's operators.md, rows RNN, GRU and LSTM.
    """

    anchor = ("RNN", "GRU", "LSTM")
    source = "https://github.com/onnx/onnx-tensorrt/blob/main/docs/operators.md"

    def judge(self, subject: Subject) -> Finding | None:
        given = subject.node.attributes.get("activations")
        if subject.attribute("direction") != "bidirectional" or given is None:
            return None
        names = subject.attribute("activations")
        if names is None:
            return unknown("the activations are not known", self.source)
        half = len(names) // 2
        if list(names[:half]) != list(names[half:]):
            return refused(f"the directions have different activations: {', '.join(names)}", self.source)
        return None
