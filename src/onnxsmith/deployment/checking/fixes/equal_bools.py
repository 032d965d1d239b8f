"""Compares bools by Xor."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes._node_replacement import rewritten
from onnxsmith.deployment.checking.fixes._shaped_copy import Places
from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.surgery.node_insertion import Inserter


class EqualBools(Fix):
    """Some targets compare only numbers. Two bools are equal unless exactly one of them is true: Not(Xor).

    Refused:
    1. The values are not bools.
    """

    rank = 7

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        rewritten(places, "Equal", _same)
        if places.changed:
            yield "bools are compared by Xor", places.model


def _same(node: ir.Node, write: Inserter) -> ir.Value | None:
    if any(value is None or value.dtype != ir.DataType.BOOL for value in node.inputs):
        return None
    return write.op("Not", write.op("Xor", *node.inputs))
