"""An `Expand` with a known target gets a constant target, or is removed."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import passed_on, passes_on
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class ConstantExpand(Rule):
    """Expand broadcasts both ways, so a 1 in its target keeps the data's dimension. A 1 can therefore replace the
    data's own dimension in the target; a target of ones expands nothing, and the Expand is removed.

    Refused:
    1. An element is symbolic and not the data's dimension at the same place, counted from the right.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4] x) => (float[batch,4] y) {
            s = Shape(x)
            e = Expand(x, s)
            y = Relu(e)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4] x) => (float[batch,4] y) {
            y = Relu(x)
        }
    """

    anchor = ("Expand",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        target, data = facts.integers(node.inputs[1]), facts.dims(node.inputs[0])
        if target is None or data is None:
            return None
        written = _written(target, data)
        if written is None:
            return NoMatch("an element of the target depends on sizes that are not the data's")
        if len(written) <= len(data) and all(element == 1 for element in written):
            return passes_on(node)
        if facts.constant(node.inputs[1]) is not None:
            return None
        if all(isinstance(element, int) for element in target):
            written = [int(element) for element in target]  # as folding would write it, if it ran first
        return Match(node, (node,), {"target": written})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        if "target" not in match.found:
            return passed_on(match)
        target = ir.Tensor(np.array(match.found["target"], np.int64))
        source = match.node.inputs[1]
        name = source.name if source is not None and source.name else "target"
        return tape.op("Expand", [match.node.inputs[0], tape.initializer(target, name=f"{name}_known")])


def _written(target: tuple[facts.Element, ...], data: tuple[facts.Element | None, ...]) -> list[int] | None:
    """Returns the target with 1 instead of the data's own dimensions."""
    padded = (None,) * (len(target) - len(data)) + data[max(0, len(data) - len(target)) :]
    written: list[int] = []
    for element, dim in zip(target, padded, strict=True):
        if element == dim:
            written.append(1)
        elif isinstance(element, int):
            written.append(element)
        else:
            return None
    return written
