"""Helpers of many rules: find a value's producer, compare constants, check other readers and the opset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.facts import integer as integer
from onnxsmith.graph.structure.uses import is_read_outside
from onnxsmith.optimizer.rules.base import NoMatch, TooOld

FLOATS = (ir.DataType.FLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)
UNARY = (
    *("Abs", "Cast", "Ceil", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "IsInf", "IsNaN"),
    *("LeakyRelu", "Log", "Mish", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Softplus"),
    *("Softsign", "Sqrt", "Swish", "Tanh", "ThresholdedRelu"),
)
"""Lists operators with one input that treat every element alike, independent of its position."""


def maker(value: ir.Value | None, reader: ir.Node, *op_types: str) -> ir.Node | None:
    """Returns the producer of the value if it has one of these types (in ONNX's own domain) and is in the graph of
    `reader`."""
    node = value.producer() if value is not None else None
    if node is None or node.op_type not in op_types or node.domain or node.graph is not reader.graph:
        return None
    return node


def two_ways(node: ir.Node) -> tuple[tuple[ir.Value, ir.Value], ...]:
    """Returns both orders of a binary operator's inputs; of Sub, Div and Pow, only the given order."""
    a, b = node.inputs[:2]
    if a is None or b is None:
        return ()
    return ((a, b),) if node.op_type in ("Sub", "Div", "Pow") else ((a, b), (b, a))


def times_number(node: ir.Node | None) -> Iterator[tuple[ir.Value, float]]:
    """Yields the ways to read a Mul or Div as a value by a constant number that keeps its shape."""
    for value, other in two_ways(node) if node is not None else ():
        number = facts.constant(other)
        if number is not None and number.size == 1 and fits(number.shape, value):
            yield value, number.item()


def is_number(value: ir.Value | None, wanted: float, beside: ir.Value) -> bool:
    """Whether a value is a constant of this number, to the precision of its dtype, and does not widen `beside`."""
    array = facts.constant(value)
    if array is None or array.size != 1 or not fits(array.shape, beside):
        return False
    if array.dtype.kind == "f":
        return bool(abs(float(array.item()) - wanted) <= 2 * float(np.finfo(array.dtype).eps) * abs(wanted))
    return array.dtype.kind in "iu" and int(array.item()) == wanted


def fits(shape: Sequence[facts.Element | None], beside: ir.Value) -> bool:
    """Whether a tensor of this shape broadcasts to the shape of `beside`, without raising its rank or widening it."""
    if not shape:
        return True
    dims = facts.dims(beside)
    if dims is None or len(shape) > len(dims):
        return False
    pairs = zip(reversed(shape), reversed(dims), strict=False)
    return all(size == 1 or symbols.covers(dim, size) for size, dim in pairs)


def only_reader(node: ir.Node) -> ir.Node | None:
    """Returns the only node that reads the first result; None if the result is a graph output, or the reader is in
    another graph or no operator of ONNX."""
    value = node.outputs[0]
    readers = value.consumers()
    if len(readers) != 1 or value.is_graph_output():
        return None
    (reader,) = readers
    return None if reader.domain or reader.graph is not node.graph else reader


def read_elsewhere(nodes: Sequence[ir.Node]) -> NoMatch | None:
    """Returns a refusal if other nodes read a result of `nodes`. The results of the anchor, the first node, do not
    count."""
    for node in nodes[1:]:
        for value in node.outputs:
            if is_read_outside(value, nodes):
                return NoMatch(f"a result of {node.op_type} in the middle is also used elsewhere", value)
    return None


def too_old(node: ir.Node, op_type: str, since: int) -> TooOld | None:
    """Returns a refusal if the model's opset does not have the operator. If an earlier opset has another form,
    `op_type` names the form: `Slice with axes as an input`."""
    have = facts.opset(node)
    return None if have >= since else TooOld(f"opset {have} has no {op_type}, which came with {since}", node, since)
