"""Finds the values that depend on whole numbers of unknown size, such as ids, lengths and shapes.

Without data, nothing is known of the range of an integer input: generated numbers are small, those of a user may not
be. A float made of them may be beyond the range of a narrow float, or no longer be a whole number in it. So bounds are
computed from the inputs on, by interval arithmetic. Found are the values without a bound, or with one that is too
large, and all that is computed from them, up to an operator that forgets the size: a lookup, a comparison, a Softmax.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk

LIMITS = {
    ir.DataType.INT8: (-(2.0**7), 2.0**7), ir.DataType.UINT8: (0.0, 2.0**8), ir.DataType.INT16: (-(2.0**15), 2.0**15),
    ir.DataType.UINT16: (0.0, 2.0**16), ir.DataType.INT32: (-(2.0**31), 2.0**31), ir.DataType.UINT32: (0.0, 2.0**32),
    ir.DataType.INT64: (-(2.0**63), 2.0**63), ir.DataType.UINT64: (0.0, 2.0**64),
}  # fmt: skip
_ANGLES = {"Sin", "Cos", "Tan"}
"""Operators whose result depends on the absolute error of their input."""
_STEPS = 32.0
"""The steps of a narrow float between two whole numbers that an angle needs. A choice: it is then right to two
degrees."""
_GROWS = {"ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "Pow"}
"""Operators without a rule whose results may be much larger than their inputs."""
_BOUNDED = {
    "Sigmoid", "HardSigmoid", "Tanh", "Softmax", "Hardmax", "Erf", "Softsign", "Sin", "Cos", "Sign", "IsNaN", "IsInf",
    "LayerNormalization", "InstanceNormalization", "GroupNormalization", "RMSNormalization", "LpNormalization",
    "MeanVarianceNormalization", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Not", "And", "Or", "Xor",
}  # fmt: skip
"""Operators whose results do not grow with their inputs."""
_MOVES = {
    "Identity", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Expand", "Tile", "Gather",
    "GatherElements", "GatherND", "Split", "ReduceMax", "ReduceMin", "ReduceMean", "DepthToSpace", "SpaceToDepth",
    "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "Compress", "ReverseSequence", "Trilu",
}  # fmt: skip
"""Operators whose results lie between the least and the greatest element of their first input, or are 0."""
_COUNTS = {"Shape", "Size", "NonZero", "ArgMax", "ArgMin"}
"""Operators that give whole numbers from 0 on."""


@dataclass(frozen=True)
class Whole:
    """What is known of a value that was made of whole numbers: its bounds, whether it still is a whole number, and
    where the numbers come from. `few` is true for a value with a few numbers only, such as a mask: rounding moves those
    as it moves a constant. A constant has no source."""

    low: float
    high: float
    is_whole: bool = True
    few: bool = False
    source: str = ""

    @property
    def largest(self) -> float:
        """Returns the largest magnitude."""
        return max(abs(self.low), abs(self.high))

    def fits(self, most: float, exact: float) -> bool:
        """Whether a narrow float holds the value: `most` is the largest number it may have, up to `exact` all whole
        numbers are exact in it."""
        if not self.source:
            return True
        return self.largest <= (most if self.few else min(exact, most))


State = Whole | None
"""What is known of a value; None if it was not made of whole numbers."""


def of_unknown_size(
    model: ir.Model, most: float, exact: float, declared: Mapping[str, tuple[int, int]], *, others: bool = True
) -> dict[ir.Value, Whole]:
    """Returns the float values that a narrow float may not hold, because they were made of whole numbers whose size is
    unknown or too large. `most` and `exact` are as in `Whole.fits`. `declared` are the least and the greatest value of
    inputs. Without `others`, only values made of these inputs are returned."""
    found = _Propagation(model.graph, most, exact, declared, others=others)
    found.graph(model.graph)
    floats = {
        value: state for value, state in found.states.items()
        if state is not None and state.source and value.dtype == ir.DataType.FLOAT
    }  # fmt: skip
    large = {value: state for value, state in floats.items() if not state.fits(most, exact)}
    return large | _angles(model, floats, exact / _STEPS)


def _angles(model: ir.Model, floats: Mapping[ir.Value, Whole], most: float) -> dict[ir.Value, Whole]:
    """Returns the values larger than `most` that are used as angles, and the fractions from which they were made."""
    found: dict[ir.Value, Whole] = {}
    waiting = [node.inputs[0] for node in walk.all_nodes(model) if node.op_type in _ANGLES and not node.domain]
    while waiting:
        value = waiting.pop()
        state = floats.get(value) if value is not None else None
        if value is None or state is None or value in found or state.is_whole or state.largest <= most:
            continue
        found[value] = state
        maker = value.producer()
        waiting += maker.inputs if maker is not None else ()
    return found


class _Propagation:
    """Computes what is known of each value, from the inputs on."""

    def __init__(
        self, main: ir.Graph, most: float, exact: float, declared: Mapping[str, tuple[int, int]], *, others: bool
    ) -> None:
        self._main = main
        self.states: dict[ir.Value, State] = {}
        self._most, self._exact, self._declared, self._others = most, exact, declared, others

    def graph(self, graph: ir.Graph) -> None:
        """Adds the values of a graph. An integer that enters a body may have any size of its dtype."""
        for value in graph.inputs:
            known = self._declared.get(value.name or "") if graph is self._main else None
            if known is not None:
                self.states[value] = Whole(float(known[0]), float(known[1]), source=f"input {value.name}")
            else:
                self.states[value] = _of_dtype(value, f"input {value.name}") if self._others else None
        for node in graph:
            for body in walk.subgraphs(node):
                self.graph(body)
            for value in node.outputs:
                self.states[value] = self._result(node, value)

    def of(self, value: ir.Value | None) -> State:
        """Returns what is known of a value."""
        if value is None:
            return None
        if value in self.states and not facts.is_constant(value):
            return self.states[value]
        return _of_constant(value)

    def _result(self, node: ir.Node, value: ir.Value) -> State:
        known = facts.integers(value)
        if known and all(isinstance(one, int) for one in known):
            numbers = [float(one) for one in known if isinstance(one, int)]
            return Whole(min(numbers), max(numbers), few=True, source=f"{node.op_type} {walk.node_label(node)}")
        bodies = list(walk.subgraphs(node))
        states = [self.of(one) for one in node.inputs]
        if bodies:
            states = [self.of(one) for body in bodies for one in body.outputs]
        made = [one for one in states if one is not None and one.source]
        found = self._computed(node, states, made) if not node.domain and not bodies else _unknown(made)
        if found is None and not bodies and node.op_type not in _BOUNDED:
            found = None if all(one.fits(self._most, self._exact) for one in made) else _unknown(made)
            found = None if self._forgets(node, states) else found
        return self._limited(node, value, found)

    def _forgets(self, node: ir.Node, states: Sequence[State]) -> bool:
        """Whether the result has the size of an input that was not made of whole numbers: a lookup, or a division by a
        number of 1 or more."""
        if node.op_type in ("Gather", "GatherElements", "GatherND", "Resize", "Upsample", "Dropout", "TopK"):
            return states[0] is None or not states[0].source
        if node.op_type in _MOVES:
            return states[0] is None or not states[0].source
        divisor = states[1] if node.op_type == "Div" and len(states) > 1 else None
        return divisor is not None and divisor.low >= 1 and (states[0] is None or not states[0].source)

    def _limited(self, node: ir.Node, value: ir.Value, found: State) -> State:
        """Returns the state within the limits of the value's dtype. An integer has them even if nothing is known."""
        if value.dtype == ir.DataType.BOOL:
            return Whole(0, 1, few=True, source=f"{node.op_type} {walk.node_label(node)}")
        if value.dtype not in LIMITS:
            return found
        own = _of_dtype(value, f"{node.op_type} {walk.node_label(node)}")
        assert own is not None
        if node.op_type in _COUNTS:
            own = replace(own, low=0.0)
        if found is None:
            return own
        return replace(found, low=max(found.low, own.low), high=min(found.high, own.high), is_whole=True)

    def _computed(self, node: ir.Node, states: Sequence[State], made: Sequence[Whole]) -> State:
        """Returns the bounds that follow from those of the inputs; None if an input has none, or for an operator
        without a rule."""
        op = node.op_type
        if not made or op in _BOUNDED:
            return None
        first = states[0]
        if op in _GROWS:
            return _unknown(made)
        if op in ("ReduceMean", "AveragePool", "GlobalAveragePool") and first is not None:
            return replace(first, is_whole=False)
        if op in ("Cast", "CastLike") or op in _MOVES:
            return first
        if op == "Range":
            found = _union(states[:2])
            return None if found is None else replace(found, few=False)
        if op in ("Concat", "Where", "Pad", "ScatterElements", "ScatterND"):
            parts = states[1:3] if op == "Where" else [states[0], states[2] if len(states) > 2 else Whole(0, 0)]
            parts = list(states) if op == "Concat" else parts
            return _union(parts)
        if op in ("Min", "Max"):
            return _extreme(min if op == "Min" else max, states)
        if op == "Clip":
            low, high = (states[at] if len(states) > at else None for at in (1, 2))
            return _clipped(first, low, high)
        if op in ("ReduceSum", "CumSum"):
            return _summed(node, first)
        if op in ("MatMul", "Gemm"):
            return _product(node, states)
        if op in _ARITHMETIC and len(states) == 2:
            return _combined(_ARITHMETIC[op], op, states)
        if op in _FUNCTIONS and first is not None:
            return replace(_FUNCTIONS[op](first), few=first.few)
        return None


def _of_dtype(value: ir.Value, source: str) -> State:
    if value.dtype == ir.DataType.BOOL:
        return Whole(0, 1, few=True, source=source)
    limits = LIMITS.get(value.dtype) if value.dtype is not None else None
    return None if limits is None else Whole(*limits, source=source)


def _of_constant(value: ir.Value) -> State:
    array = facts.constant(value)
    if array is None or array.size == 0 or array.dtype.kind not in "biuf":
        return None
    finite = np.asarray(array, np.float64)
    finite = finite[np.isfinite(finite)]
    if not finite.size:
        return Whole(0, 0, few=True)
    return Whole(float(finite.min()), float(finite.max()), bool((finite == np.rint(finite)).all()), few=True)


def _unknown(made: Sequence[Whole]) -> State:
    return Whole(-math.inf, math.inf, is_whole=False, source=made[0].source) if made else None


def _union(states: Sequence[State]) -> State:
    known = [one for one in states if one is not None]
    source = next((one.source for one in known if one.source), "")
    if len(known) < len(states):
        return None
    return Whole(
        min(one.low for one in known), max(one.high for one in known), all(one.is_whole for one in known),
        all(one.few for one in known), source,
    )  # fmt: skip


def _extreme(which: Callable[..., float], states: Sequence[State]) -> State:
    """Returns the bounds of the least or the greatest of some values."""
    found, known = _union(states), [one for one in states if one is not None]
    if found is None:
        return None
    return replace(found, low=which(one.low for one in known), high=which(one.high for one in known))


def _clipped(value: State, low: State, high: State) -> State:
    if value is None:
        return None
    bottom = value.low if low is None else max(value.low, low.low)
    top = value.high if high is None else min(value.high, high.high)
    return replace(value, low=min(bottom, top), high=max(bottom, top))


def _size(value: ir.Value | None, axis: int | None = None) -> float:
    """Returns the number of elements, along one axis if it is given; infinite if it is unknown."""
    if value is None or value.shape is None:
        return math.inf
    found = list(value.shape) if axis is None else [value.shape[axis]] if len(value.shape) else [1]
    return float(math.prod(dim if isinstance(dim, int) else math.inf for dim in found))


def _times(a: float, b: float) -> float:
    """Returns the product; 0 times infinity is 0."""
    return 0.0 if a == 0 or b == 0 else a * b


def _summed(node: ir.Node, value: State) -> State:
    if value is None:
        return None
    count = _size(node.inputs[0])
    return replace(value, low=_times(min(value.low, 0), count), high=_times(max(value.high, 0), count), few=False)


def _product(node: ir.Node, states: Sequence[State]) -> State:
    one, other = states[0], states[1]
    if one is None or other is None:
        return None
    most = _times(_times(one.largest, other.largest), _size(node.inputs[0], -1))
    bias = states[2] if len(states) > 2 else Whole(0, 0)
    if bias is None:
        return None
    return Whole(-most - bias.largest, most + bias.largest, one.is_whole and other.is_whole,
                 source=one.source or other.source or bias.source)  # fmt: skip


def _corners(compute: Callable[[float, float], float], one: Whole, other: Whole) -> tuple[float, float]:
    found = [compute(a, b) for a in (one.low, one.high) for b in (other.low, other.high)]
    found = [math.inf if math.isnan(number) else number for number in found]
    return (-math.inf, math.inf) if math.inf in found and -math.inf in found else (min(found), max(found))


def _divided(a: float, b: float) -> float:
    return math.inf if b == 0 else a / b if math.isfinite(b) else 0.0


_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "Add": lambda a, b: a + b, "Sub": lambda a, b: a - b, "Mul": _times, "Div": _divided,
}  # fmt: skip


def _combined(compute: Callable[[float, float], float], op: str, states: Sequence[State]) -> State:
    one, other = states
    if one is None or other is None:
        return None
    source = one.source or other.source
    if op == "Div" and other.low <= 0 <= other.high:
        return Whole(-math.inf, math.inf, is_whole=False, source=source)
    is_whole = one.is_whole and other.is_whole and op != "Div"
    return Whole(*_corners(compute, one, other), is_whole, one.few and other.few, source)


def _monotone(function: Callable[[float], float], *, keeps_whole: bool = False) -> Callable[[Whole], Whole]:
    def applied(value: Whole) -> Whole:
        low, high = (_safe(function, end) for end in (value.low, value.high))
        return replace(value, low=min(low, high), high=max(low, high), is_whole=value.is_whole and keeps_whole)

    return applied


def _safe(function: Callable[[float], float], number: float) -> float:
    try:
        return function(number)
    except OverflowError:
        return math.inf
    except ValueError:
        return number


def _absolute(value: Whole) -> Whole:
    low = 0.0 if value.low <= 0 <= value.high else min(abs(value.low), abs(value.high))
    return replace(value, low=low, high=value.largest)


def _rounded(value: Whole) -> Whole:
    return Whole(value.low - 1, value.high + 1, True, value.few, value.source)


_FUNCTIONS: Mapping[str, Callable[[Whole], Whole]] = {
    "Neg": _monotone(lambda x: -x, keeps_whole=True), "Relu": _monotone(lambda x: max(x, 0.0), keeps_whole=True),
    "Abs": _absolute, "Floor": _rounded, "Ceil": _rounded, "Round": _rounded, "Exp": _monotone(math.exp),
    "Sqrt": _monotone(lambda x: math.sqrt(max(x, 0.0))),
    "Log": lambda value: replace(
        value, low=math.log(max(value.low, 1.0)), high=math.log(max(value.high, 1.0)), is_whole=False
    ) if value.low >= 0 and value.is_whole else replace(value, low=-math.inf, high=math.inf, is_whole=False),
}  # fmt: skip
"""Functions of one number, on bounds. The logarithm of 0 is an infinity in every dtype."""
