"""A computed `Reshape` target that is known becomes a constant."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.model import facts
from onnxsmith.rules.base import Exactness, Match, NoMatch, Rule


class ConstantReshape(Rule):
    """A target that is computed from shapes often says nothing that the data does not: its symbolic elements are
    dimensions of the data at the same place (0 copies them), and one more can be left to be worked out (-1). The
    dynamic dimensions stay dynamic. The result needs no `allowzero`: no element of it means an empty dimension.

    Refused:
    1. More than one element is neither an integer nor the data's dimension at the same place.
    2. `allowzero` is set and an element is 0: it means an empty dimension, not a copy.

    A target of which not every element is known is no match. -1 stands beside elements above 0 and copies only, so that
    it can be worked out whenever the copied dimensions are not empty.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4,6] x) => (float[batch,24] y) <int64[1] zero = {0}, int64[1] last = {24}> {
            s = Shape(x)
            n = Gather(s, zero)
            t = Concat <axis = 0> (n, last)
            y = Reshape(x, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[batch,4,6] x) => (float[batch,24] y) <int64[2] t = {0, 24}> {
            y = Reshape(x, t)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if len(node.inputs) < 2 or facts.constant(node.inputs[1]) is not None:
            return None
        target = facts.integers(node.inputs[1])
        if target is None:
            return None
        name = node.name or ""
        allowzero = node.attributes.get("allowzero")
        if 0 in target and allowzero is not None and (allowzero.is_ref() or allowzero.as_int()):
            return NoMatch("an element of the target is 0 and means an empty dimension", name)
        written = _written(target, facts.dims(node.inputs[0]) or ())
        if written is None:
            return NoMatch("more than one element depends on sizes in a way that 0 and -1 cannot say", name)
        return Match(node, (node,), {"target": written})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        target = ir.tensor(np.array(match.found["target"], np.int64))
        source = match.node.inputs[1]
        name = source.name if source is not None and source.name else "target"
        return tape.op(
            "Reshape",
            [match.node.inputs[0], tape.initializer(target, name=f"{name}_known")],
        )


def _written(target: tuple[facts.Element, ...], data: tuple[facts.Element | None, ...]) -> list[int] | None:
    """The target with 0 for dimensions copied from the data and -1 for at most one that is worked out."""
    written = []
    for index, element in enumerate(target):
        if isinstance(element, int):
            written.append(element)
        elif index < len(data) and element == data[index]:
            written.append(0)
        else:
            written.append(-1)
    return written if written.count(-1) <= 1 else None
