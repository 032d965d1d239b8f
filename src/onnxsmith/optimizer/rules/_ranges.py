"""Bounds the range of a value by the operators that make it, and reads and writes operators that limit floating-point
values to two bounds: Clip, Relu, and Max and Min with one number.

If a Clip leaves a bound out, the specification limits to the largest number of the dtype, and its reference evaluator
does not limit at all. The two differ for infinities. `LEFT_OUT` stands for such a bound: above all numbers and below
infinity."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.value_analysis import MOVING, Analysis
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


_ROUNDING = 2.0**-8
"""Widens the bounds of sums and products: float16, the coarsest dtype here, rounds normal numbers by less than this
share."""


@dataclass(frozen=True)
class _Range:
    """The least and the largest number of a value, and whether all finite numbers are whole. NaN does not count."""

    low: float = -math.inf
    high: float = math.inf
    whole: bool = False


def _sum(walk: _Ranges, node: ir.Node) -> _Range:
    a, b = walk.both(node)
    if node.op_type == "Sub":
        b = _Range(-b.high, -b.low, b.whole)
    return _rounded(a.low + b.low, a.high + b.high, a.whole and b.whole)


def _product(walk: _Ranges, node: ir.Node) -> _Range:
    a, b = walk.both(node)
    ends = [x * y if x and y else 0.0 for x in (a.low, a.high) for y in (b.low, b.high)]
    return _rounded(min(ends), max(ends), a.whole and b.whole)


def _rounded(low: float, high: float, whole: bool) -> _Range:
    return _Range(low - abs(low) * _ROUNDING, high + abs(high) * _ROUNDING, whole)


def _negative(walk: _Ranges, node: ir.Node) -> _Range | None:
    found = walk.first(node)
    return None if found is None else _Range(-found.high, -found.low, found.whole)


def _clamped(walk: _Ranges, node: ir.Node) -> _Range | None:
    bounds = clamp(node)
    if bounds is None:
        return None
    found = walk.of(bounds.source) or _Range()
    whole = found.whole and all(math.isinf(end) or end.is_integer() for end in (bounds.low, bounds.high))
    return _Range(bounds.of(found.low), bounds.of(found.high), whole)


def _cast(walk: _Ranges, node: ir.Node) -> _Range | None:
    """Returns the range of the integers or bools that are cast to float."""
    dtype = node.inputs[0].dtype if node.inputs[0] is not None else None
    if dtype is ir.DataType.BOOL:
        return _Range(0.0, 1.0, True)
    if dtype is None or not dtype.is_integer():
        return None
    numbers = 2.0**dtype.bitwidth
    return _Range(-numbers / 2, numbers / 2, True) if dtype.is_signed() else _Range(0.0, numbers, True)


class _Ranges(Analysis[_Range]):
    rules: ClassVar = {
        **dict.fromkeys(MOVING, Analysis.first),
        **dict.fromkeys(("Cos", "Erf", "Sin", "Softsign", "Tanh"), lambda _, __: _Range(-1.0, 1.0)),
        **dict.fromkeys(("HardSigmoid", "Sigmoid", "Softmax"), lambda _, __: _Range(0.0, 1.0)),
        **dict.fromkeys(("Abs", "Exp", "Softplus", "Sqrt"), lambda _, __: _Range(0.0)),
        **dict.fromkeys(("Add", "Sub"), _sum),
        **dict.fromkeys(CLAMPS, _clamped),
        "Cast": _cast,
        "Mul": _product,
        "Neg": _negative,
        "Where": lambda walk, node: walk.joined(node.inputs[1:]),
    }

    def fact(self, value: ir.Value) -> _Range | None:
        if value.dtype not in FLOATS:
            return None
        array = facts.constant(value)
        if array is not None:
            finite = bool(array.size) and bool(np.isfinite(array).all())
            whole = bool((array == np.round(array)).all())
            return _Range(float(array.min()), float(array.max()), whole) if finite else None
        found, most = self.computed(value), float(np.finfo(value.dtype.numpy()).max)
        if found is None:
            return None
        # A larger number overflows to infinity. Bounds that cannot be computed, inf - inf, are unknown.
        low, high = (found.low if found.low > -most else -math.inf, found.high if found.high < most else math.inf)
        return replace(found, low=low, high=high)

    def both(self, node: ir.Node) -> list[_Range]:
        """Returns the ranges of two operands."""
        return [self.of(value) or _Range() for value in node.inputs]

    def join(self, a: _Range, b: _Range) -> _Range:
        """Returns the range of both."""
        return _Range(min(a.low, b.low), max(a.high, b.high), a.whole and b.whole)


def not_negative(value: ir.Value | None) -> bool:
    """Whether the operators that make a floating-point value prove that none of its numbers is negative. The value may
    still have -0.0 and NaN."""
    found = _Ranges().of(value) if value is not None and value.dtype in FLOATS else None
    return found is not None and found.low >= 0


def largest(value: ir.Value | None) -> float:
    """Returns a bound of the absolute values of a floating-point value; infinity if there is none. NaN does not
    count."""
    found = _Ranges().of(value) or _Range()
    return max(-found.low, found.high)


def is_whole(value: ir.Value | None) -> bool:
    """Whether the numbers of a floating-point value are proven to be integers: casts of integers, their sums and
    products."""
    found = _Ranges().of(value)
    return found is not None and found.whole
