"""Bounds the range of a value by the operators that make it, and reads and writes operators that limit floating-point
values to two bounds: Clip, Relu, and Max and Min with one number.

If a Clip leaves a bound out, the specification limits to the largest number of the dtype, and its reference evaluator
does not limit at all. The two differ for infinities. `LEFT_OUT` stands for such a bound: above all numbers and below
infinity."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import FLOATS, fits, two_ways

CLAMPS = ("Clip", "Relu", "Max", "Min")
LEFT_OUT = sys.float_info.max


@dataclass(frozen=True)
class Clamp:
    """Limits the value `source` to `low` and `high`."""

    source: ir.Value
    low: float
    high: float

    def of(self, number: float) -> float:
        """Limits a number to the bounds."""
        return min(max(number, self.low), self.high)


def clamp(node: ir.Node) -> Clamp | None:
    """Returns the clamp of a node; None if its operator is not in `CLAMPS`, or its bounds are not known numbers in
    order."""
    source = node.inputs[0] if node.inputs else None
    if source is None or node.domain or source.dtype not in FLOATS:
        return None
    if node.op_type == "Relu":
        return Clamp(source, 0.0, math.inf)
    found = _clip(node, source) if node.op_type == "Clip" else _one_sided(node)
    return found if found is not None and found.low <= found.high else None


def _clip(node: ir.Node, source: ir.Value) -> Clamp | None:
    if facts.opset(node) < 6:
        return None
    bounds = []
    for index, (name, default) in enumerate((("min", -LEFT_OUT), ("max", LEFT_OUT)), start=1):
        attribute, given = node.attributes.get(name), node.inputs[index] if len(node.inputs) > index else None
        if attribute is not None:
            number = None if attribute.is_ref() else attribute.as_float()
            number = default if number == np.float32(math.copysign(np.finfo(np.float32).max, default)) else number
        else:
            number = default if given is None else _number(given)
        if number is None:
            return None
        bounds.append(number)
    return Clamp(source, bounds[0], bounds[1])


def _number(value: ir.Value | None) -> float | None:
    array = facts.constant(value)
    if array is None or array.size != 1 or array.dtype.kind != "f" or np.isnan(array).any():
        return None
    return float(array.item())


def _one_sided(node: ir.Node) -> Clamp | None:
    if node.op_type not in ("Max", "Min") or len(node.inputs) != 2 or facts.opset(node) < 8:
        return None
    for value, other in two_ways(node):
        number, array = _number(other), facts.constant(other)
        if number is not None and array is not None and fits(array.shape, value) and facts.constant(value) is None:
            low, high = (number, math.inf) if node.op_type == "Max" else (-math.inf, number)
            return Clamp(value, low, high)
    return None


def can_write(node: ir.Node, found: Clamp) -> bool:
    """Whether the opset at the node has an operator for the clamp."""
    opset = facts.opset(node)
    return (found.low, found.high) == (0, math.inf) or opset >= 12 or (opset >= 6 and found.source.dtype == FLOATS[1])


def write_clamp(tape: ir.tape.Tape, found: Clamp, opset: int) -> ir.Value:
    """Writes a Relu or a Clip."""
    if (found.low, found.high) == (0, math.inf):
        return tape.op("Relu", [found.source])
    bounds = {"min": found.low, "max": found.high}
    given = {name: number for name, number in bounds.items() if abs(number) != LEFT_OUT}
    if opset < 11:
        return tape.op("Clip", [found.source], given)
    assert found.source.dtype is not None
    kind = found.source.dtype.numpy()
    inputs = [found.source, None, None]
    for index, name in enumerate(bounds, start=1):
        if name in given:
            inputs[index] = tape.initializer(ir.Tensor(np.array(given[name], kind)), name=name)
    return tape.op("Clip", inputs if inputs[2] is not None else inputs[:2])


_NOT_NEGATIVE = ("Abs", "Exp", "HardSigmoid", "Sigmoid", "Softmax", "Softplus", "Sqrt")
_WITHIN_ONE = ("Cos", "Erf", "HardSigmoid", "Sigmoid", "Sin", "Softmax", "Softsign", "Tanh")
_KEEPING = ("Flatten", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")
"""Lists operators whose result has elements of their first input only."""
_DEEPEST = 4
"""Limits the operators that are followed back. A choice that bounds the cost."""


def not_negative(value: ir.Value | None) -> bool:
    """Whether the last few operators prove that no number in a floating-point value is negative. The value may still
    have -0.0 and NaN."""
    if value is None or value.dtype not in FLOATS:
        return False
    for _ in range(_DEEPEST):
        node = value.producer() if value is not None else None
        if node is None or node.domain or value is not node.outputs[0]:
            return False
        if node.op_type in _NOT_NEGATIVE:
            return True
        bounds = clamp(node)
        if bounds is not None:
            return bounds.low >= 0
        if node.op_type not in _KEEPING:
            return False
        value = node.inputs[0]
    return False


def largest(value: ir.Value | None) -> float:
    """Returns a bound of the absolute values of a floating-point value, from the last few operators; infinity if there
    is none. NaN and infinities do not count."""
    for _ in range(_DEEPEST):
        node = value.producer() if value is not None else None
        if node is None or node.domain or value is not node.outputs[0]:
            return math.inf
        if node.op_type in _WITHIN_ONE:
            return 1.0
        source = node.inputs[0] if node.inputs else None
        if node.op_type == "Cast":
            dtype = source.dtype if source is not None else None
            return 2.0**dtype.bitwidth if dtype is not None and dtype.is_integer() else math.inf
        bounds = clamp(node)
        if bounds is not None:
            return max(abs(bounds.low), abs(bounds.high))
        if node.op_type not in _KEEPING:
            return math.inf
        value = source
    return math.inf
