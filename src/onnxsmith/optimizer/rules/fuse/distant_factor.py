"""A constant factor goes back through operators that only move data, into weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import fits, two_ways
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.optimizer.rules import _factors


class DistantFactor(Rule):
    """A factor can move through operators that are linear or only move data: Transpose(MatMul(x, W)) * c is
    Transpose(MatMul(x, W·c)). So the scale of an attention, on its scores or on query and key, goes into the weights of
    the query. The factor moves back through Transpose, Reshape, Split, Slice and Concat, through sums in which every
    term takes it, and through products in which one factor takes it (the rotation by positions, MatMul). It ends in a
    linear operator, a LayerNormalization, or an existing factor. If there is no operator between, fuse/conv-mul and
    fuse/matmul-mul do it.

    A factor on one side of a MatMul may go to the other side.

    Constants are computed in float64 and stored in their old dtype.

    Refused:
    1. The weights have other readers or are not constants, as for fuse/matmul-mul. Or the bias of a LayerNormalization
       is not constant.
    2. A product overflows, or a small one loses bits: it is not a normal number of the weights' dtype.
    3. A constant that takes the factor would grow by more than 1 kB.

    No match: a factor that raises the rank or widens its value; a value on the way with other readers.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3,2] x) => (float[N,2,3] y) <float[2,2] w = {1, 2, 3, 4}, float half = {0.5}> {
            a = MatMul(x, w)
            b = Transpose <perm = [0, 2, 1]> (a)
            y = Mul(b, half)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,3,2] x) => (float[N,2,3] y) <float[2,2] w = {0.5, 1, 1.5, 2}> {
            a = MatMul(x, w)
            y = Transpose <perm = [0, 2, 1]> (a)
        }
    """

    anchor = ("Mul", "Div")
    exactness = Exactness.REASSOCIATES

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        if facts.opset(node) < 7:
            return None
        for source, other in two_ways(node) if node.op_type == "Mul" else two_ways(node)[:1]:
            array = facts.constant(other)
            if array is None or array.dtype.kind != "f" or not fits(array.shape, source) or not array.all():
                continue
            dims = facts.dims(source) or ()
            factor = array.astype(np.float64).reshape((1,) * (len(dims) - array.ndim) + array.shape)
            if node.op_type == "Div":
                factor = 1 / factor
            return _match(node, source, factor)
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        sink: _factors.Sink = match.found["sink"]
        new = sink.write(tape)
        source: ir.Value = match.found["source"]
        return {sink.value: new, match.node.outputs[0]: new if source is sink.value else source}


def _match(node: ir.Node, source: ir.Value, factor: _factors.Array) -> Match | NoMatch | None:
    refusal: NoMatch | None = None
    ways = [(source, factor, node)]
    reader = next(iter(node.outputs[0].consumers()), None) if len(node.outputs[0].uses()) == 1 else None
    if reader is not None and reader.op_type == "MatMul" and not reader.domain and reader.graph is node.graph:
        ways += [
            (value, factor, reader) for value in reader.inputs if value is not None and value is not node.outputs[0]
        ]
    from onnxsmith.optimizer.rules import _factors

    for value, numbers, by in ways:
        if by is not node and (numbers.size > 1 or node.outputs[0].is_graph_output() or facts.is_constant(value)):
            continue
        sink = _factors.sink(value, numbers, [by])
        if isinstance(sink, NoMatch):
            refusal = refusal or sink
        elif sink is not None and not (by is node and sink.value is source and sink.nodes[0].op_type in _NEAR):
            found = {"sink": sink, "source": source}
            return Match(node, (node, *sink.nodes), found, sink.nodes[-1], sink.scaled)
    return refusal


_NEAR = ("Conv", "ConvTranspose", "Gemm", "MatMul", "Add")
"""Operators that fuse/conv-mul and fuse/matmul-mul handle, if the factor follows them directly."""
