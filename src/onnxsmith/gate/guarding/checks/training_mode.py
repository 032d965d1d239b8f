"""No node of the model runs in training mode."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.base.words import first_few, several
from onnxsmith.gate.guarding.checks.base import Check
from onnxsmith.gate.guarding.guarded_file import GuardedFile
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk

_SHOWN = 3
"""Limits the nodes that a problem names. A choice."""


class TrainingMode(Check):
    """No Dropout draws random numbers, and no BatchNormalization takes its statistics from the batch."""

    def problems(self, file: GuardedFile) -> Iterator[Problem]:
        if file.model is None:
            return
        trained = [node for node in walk.all_nodes(file.model) if _trains(node)]
        if trained:
            yield Problem(
                "guard/training-mode",
                f"{several(len(trained), 'node runs', 'nodes run')} in training mode",
                where=f"{file.path}, node {walk.node_label(trained[0])!r}",
                why="; ".join([
                    first_few([f"{node.op_type} {walk.node_label(node)}" for node in trained], _SHOWN),
                    "the outputs are random, or depend on the other rows of a batch",
                ]),
                fix="put the module into evaluation mode, `module.eval()`, and export it again",
            )  # fmt: skip


def _trains(node: ir.Node) -> bool:
    """Whether a node runs in training mode. The specification says for each opset how that is set."""
    if node.domain or node.op_type not in ("Dropout", "BatchNormalization"):
        return False
    opset = facts.opset(node)
    if opset < 7:
        return not facts.integer(node, "is_test", 0)
    if node.op_type == "Dropout":
        flag = node.inputs[2] if len(node.inputs) > 2 else None
        constant = facts.constant(flag) if flag is not None else None
        return constant is not None and bool(constant.all())
    if opset >= 14:
        return bool(facts.integer(node, "training_mode", 0))
    return sum(bool(value.name) for value in node.outputs) > 1
