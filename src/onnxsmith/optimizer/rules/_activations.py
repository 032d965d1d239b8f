"""Finds written-out activations, for any order of their factors and summands.

`x · gate(p(x))`, scaled and shifted, is a polynomial in x and in the gate. The polynomial is multiplied out and
compared with the formula of an activation, so that x/2 · (1 + erf(x/√2)) is also found as
(x · (1 + erf(x · 0.7071))) · 0.5."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import fits, maker, read_elsewhere

Polynomial = Mapping[tuple[int, int], float]
"""Maps the powers of x and of the gate to the coefficient of their product."""

_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Pow", "Neg")
_OUTSIDE, _INSIDE = 4, 6
"""Limit the operators between the last operator and the gate, and between the gate and x. A choice: no common form has
more."""
_MOST_POWER = 4
"""Limits the exponents that are multiplied out. A choice: the formulas here need 3."""


@dataclass(frozen=True)
class Formula:
    """Describes an activation: the operators of its gate, the outermost first; the argument of the innermost operator
    (None for any linear function of x); and the whole formula."""

    gate: tuple[str, ...]
    argument: Polynomial | None
    result: Polynomial


@dataclass(frozen=True)
class Found:
    """Holds a match of a formula: x, the nodes that compute the activation, the last first, the nodes of the gate, the
    outermost first, and the gate's argument."""

    source: ir.Value
    nodes: tuple[ir.Node, ...]
    gate: tuple[ir.Node, ...]
    argument: Polynomial


def find(node: ir.Node, formula: Formula) -> Found | None:
    """Returns the formula that ends at the node, or None."""
    return next(ways(node, formula), None)


def ways(node: ir.Node, formula: Formula) -> Iterator[Found]:
    """Yields a match for each value that may be x, the nearest to the gate first."""
    gate = (node,) if (node.op_type,) == formula.gate else _gate(node, formula.gate, _OUTSIDE)
    if not gate or gate[-1].inputs[0] is None:
        return
    for source in dict.fromkeys(_candidates(gate[-1].inputs[0], node, _INSIDE)):
        sight = _Sight(source, gate)
        argument = sight.expand(gate[-1].inputs[0], node)
        if argument is None or not _is_argument(argument, formula, sight):
            continue
        if _equal(sight.expand(node.outputs[0], node), formula.result, sight):
            yield Found(source, (node, *(other for other in sight.nodes if other is not node)), gate, argument)


def _is_argument(found: Polynomial, formula: Formula, sight: _Sight) -> bool:
    if formula.argument is None:
        return (1, 0) in found and set(found) <= {(1, 0), (0, 0)}
    return _equal(found, formula.argument, sight)


def _gate(node: ir.Node, op_types: tuple[str, ...], depth: int) -> tuple[ir.Node, ...]:
    """Returns the nodes of the gate near the node; empty if there is none."""
    if depth == 0:
        return ()
    for value in node.inputs:
        found: list[ir.Node] = []
        at = maker(value, node, op_types[0])
        while at is not None and len(found) < len(op_types):
            found.append(at)
            at = maker(at.inputs[0], node, op_types[len(found)]) if len(found) < len(op_types) else None
        if len(found) == len(op_types):
            return tuple(found)
        inner = maker(value, node, *_ARITHMETIC)
        deeper = _gate(inner, op_types, depth - 1) if inner is not None else ()
        if deeper:
            return deeper
    return ()


def _candidates(value: ir.Value, reader: ir.Node, depth: int) -> Iterator[ir.Value]:
    """Yields values that may be x: the value itself, and the values that it is computed from."""
    yield value
    inner = maker(value, reader, *_ARITHMETIC) if depth else None
    for other in inner.inputs if inner is not None else ():
        if other is not None and facts.constant(other) is None:
            yield from _candidates(other, reader, depth - 1)


@dataclass
class _Sight:
    """Expands values of the graph into polynomials in `source` and the gate; collects the nodes that it passes."""

    source: ir.Value
    gate: tuple[ir.Node, ...]
    nodes: dict[ir.Node, None] = field(default_factory=dict)
    constants: int = 0
    precision: float = 0.0
    known: dict[ir.Value, Polynomial | None] = field(default_factory=dict)

    def expand(self, value: ir.Value | None, reader: ir.Node, depth: int = _OUTSIDE + _INSIDE) -> Polynomial | None:
        """Returns the value as an expanded polynomial; None if it is not a polynomial, or if its degree is too high."""
        if value is None or depth == 0:
            return None
        if value not in self.known:
            self.known[value] = self._expanded(value, reader, depth)
        return self.known[value]

    def _expanded(self, value: ir.Value, reader: ir.Node, depth: int) -> Polynomial | None:
        if value is self.source:
            return {(1, 0): 1.0}
        number = self._number(value)
        if number is not None:
            return {(0, 0): number}
        if value is self.gate[0].outputs[0]:
            self.nodes.update(dict.fromkeys(self.gate))
            return {(0, 1): 1.0}
        node = maker(value, reader, *_ARITHMETIC)
        if node is None:
            return None
        self.nodes[node] = None
        parts = [self.expand(part, reader, depth - 1) for part in node.inputs]
        found = [part for part in parts if part is not None]
        made = _combined(node.op_type, found) if len(found) == len(parts) else None
        return made if made is not None and all(sum(power) <= _MOST_POWER for power in made) else None

    def _number(self, value: ir.Value) -> float | None:
        array = facts.constant(value)
        if array is None or array.size != 1 or array.dtype.kind != "f" or not fits(array.shape, self.source):
            return None
        self.constants += 1
        self.precision = max(self.precision, float(np.finfo(array.dtype).eps))
        return float(array.item())


def _combined(op_type: str, parts: list[Polynomial]) -> Polynomial | None:
    if op_type == "Neg":
        return _product(parts[0], {(0, 0): -1.0})
    first, second = parts
    constant = second.get((0, 0), 0.0) if set(second) <= {(0, 0)} else None
    match op_type:
        case "Add":
            return _sum(first, second)
        case "Sub":
            return _sum(first, _product(second, {(0, 0): -1.0}))
        case "Mul":
            return _product(first, second)
        case "Div":
            return _product(first, {(0, 0): 1 / constant}) if constant else None
        case _:
            return _power(first, constant)


def _sum(a: Polynomial, b: Polynomial) -> Polynomial:
    return {power: a.get(power, 0.0) + b.get(power, 0.0) for power in {**a, **b}}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    result: dict[tuple[int, int], float] = {}
    for (x, gate), one in a.items():
        for (more, again), two in b.items():
            power = (x + more, gate + again)
            result[power] = result.get(power, 0.0) + one * two
    return result


def _power(base: Polynomial, exponent: float | None) -> Polynomial | None:
    if exponent not in (2.0, 3.0):
        return None
    square = _product(base, base)
    return square if exponent == 2.0 else _product(square, base)


def _equal(found: Polynomial | None, wanted: Polynomial, sight: _Sight) -> bool:
    """Whether two polynomials are equal, to the precision of the constants in the graph."""
    if found is None or {power for power, factor in found.items() if factor} != set(wanted):
        return False
    room = (sight.constants + 1) * max(sight.precision, 1e-15)
    return all(abs(found[power] - factor) <= room * abs(factor) for power, factor in wanted.items())


def clip_bounds(clip: ir.Node) -> tuple[float, float] | None:
    """Returns the bounds of a Clip, from its attributes or its inputs; None if they are not constant."""
    bounds = [-math.inf, math.inf]
    for index, name in enumerate(("min", "max")):
        attribute = clip.attributes.get(name)
        value = clip.inputs[index + 1] if len(clip.inputs) > index + 1 else None
        if attribute is not None:
            if attribute.is_ref():
                return None
            bounds[index] = attribute.as_float()
        elif value is not None:
            array = facts.constant(value)
            if array is None:
                return None
            bounds[index] = float(array.item())
    return bounds[0], bounds[1]


_WHOLE = {(1, 0): 0.5, (1, 1): 0.5}
_SLOPE, _CUBIC = math.sqrt(2 / math.pi), 0.044715
GELU = {
    "none": Formula(("Erf",), {(1, 0): 1 / math.sqrt(2)}, _WHOLE),
    "tanh": Formula(("Tanh",), {(1, 0): _SLOPE, (3, 0): _SLOPE * _CUBIC}, _WHOLE),
}
"""Gives the formula of Gelu by the value of `approximate`."""
SWISH = Formula(("Sigmoid",), None, {(1, 1): 1.0})
"""Describes Swish. The gate may have any slope and offset."""


def swish(node: ir.Node) -> Found | None:
    """Returns the Swish that ends at the node, if the argument of its gate has no offset."""
    return next((way for way in ways(node, SWISH) if not way.argument.get((0, 0))), None)


_ON_THE_WAY = ("Add", "Sub", "Mul", "Div", "Pow", "Neg", "Erf", "Tanh", "Sigmoid")
_MOST_AFTER = 12
"""Limits the nodes after a product that are examined. A choice: no common form has more."""


def is_part(node: ir.Node) -> bool:
    """Whether a node belongs to a written-out Gelu or Swish whose intermediate results have no other readers.

    A rewrite that moves such a product elsewhere saves a node. But then no runtime recognises the activation, which it
    would compute as one operator, and neither does a rule after a conversion to a newer opset."""
    for end in _after(node):
        for formula in (*GELU.values(), SWISH):
            found = find(end, formula)
            if found is not None and node in found.nodes and read_elsewhere(found.nodes) is None:
                return True
    return False


def _after(node: ir.Node) -> Iterator[ir.Node]:
    """Yields the products at which an activation with this node may end, the node itself first."""
    seen = {node: None}
    waiting = [node]
    while waiting:
        one = waiting.pop(0)
        if one.op_type in ("Mul", "Div"):
            yield one
        for reader in one.outputs[0].consumers():
            beside = reader.graph is node.graph and reader.op_type in _ON_THE_WAY and not reader.domain
            if beside and reader not in seen and len(seen) < _MOST_AFTER:
                seen[reader] = None
                waiting.append(reader)
