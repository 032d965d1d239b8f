"""Reads the masks of a written-out attention, and makes one equivalent mask for the operator Attention.

A key is hidden if its mask is -∞ or the lowest number of the dtype. If all keys of a query are hidden, runtimes give
zeros. The written-out form gives NaN if all masks are -∞. If they are the lowest number, which swallows any score in
the sum, it gives the mean of the values. Half of the lowest number swallows scores as well, but runtimes do not treat
such keys as hidden. So a mask with this number gives the mean, too.

A mask shows a key to every query if its first column has the same truth value in every row."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.graph.shapes.affine import Affine, affine
from onnxsmith.graph.shapes.uniform_tensors import uniform
from onnxsmith.graph.shapes.value_analysis import MOVING, Analysis
from onnxsmith.optimizer.rules._patterns import integer, two_ways
from onnxsmith.optimizer.rules._ranges import is_whole, largest
from onnxsmith.optimizer.rules.base import NoMatch

_DEEPEST = 8
"""Limits the operators that are followed back from a mask. A choice that bounds the cost."""


@dataclass(frozen=True)
class Added:
    """Stands for a mask that is added to the scores."""

    value: ir.Value


@dataclass(frozen=True)
class Chosen:
    """Stands for a Boolean mask `value`: where it is true, scores are kept (with `keeps`) or replaced by the number
    `fill`; elsewhere the opposite."""

    value: ir.Value
    keeps: bool
    fill: float


Step = Added | Chosen


class Kind(Enum):
    """Says which elements a mask that is added may have."""

    SMALL = 0
    """Numbers within half of the dtype's range, for which no runtime treats a key as hidden."""
    HUGE = 1
    """0, or numbers that swallow a score; -∞ if an earlier step has overflowed."""
    SHOWING = 2
    """-∞ and other numbers, but each query has a key that is not hidden."""


@dataclass(frozen=True)
class Mask:
    """Makes the mask of Attention that replaces all steps, the innermost first."""

    steps: tuple[Step, ...]
    guarded: bool
    dtype: ir.DataType

    def refusal(self) -> NoMatch | None:
        """Returns why no mask of the operator gives the same result; None if one does."""
        unbounded = overflowing = 0
        for step in self.steps if not self._is_constant_as_it_is() else ():
            if isinstance(step, Added):
                found = [kind(part, self.dtype, guarded=self.guarded) for part in self._parts(step.value)]
                wrong = next((one for one in found if isinstance(one, NoMatch)), None)
                unbounded += found.count(Kind.SHOWING)
                overflowing += found.count(Kind.HUGE)
            else:
                wrong = self._hides(step)
                unbounded += step.fill == -math.inf
            if wrong is not None:
                return wrong
        # each mask leaves every query a key, but perhaps not the same key
        if unbounded > 1 and not self.guarded:
            return NoMatch("two masks together may hide all keys from a query", self.steps[-1].value)
        if overflowing > 1 and self.guarded:
            return NoMatch("two masks together may overflow, which the guard against NaN makes 0", self.steps[-1].value)
        return None

    def _hides(self, step: Chosen) -> NoMatch | None:
        if step.fill > _lowest(self.dtype) / 2:
            return NoMatch(f"a score of {step.fill:g} may not hide a key completely", step.value)
        # the guard replaces NaN by zeros, which is what runtimes give
        if step.fill == -math.inf and not self.guarded and not sees_a_key(step.value, step.keeps):
            return NoMatch(f"the mask {MAY_HIDE_ALL}: NaN there, where runtimes give zeros", step.value)
        return None

    def _is_constant_as_it_is(self) -> bool:
        """Whether the only mask is a constant in which each query has a key that is not hidden."""
        step = self.steps[0]
        array = facts.constant(step.value) if len(self.steps) == 1 and isinstance(step, Added) else None
        if array is None or not array.ndim:
            return False
        return bool((array.max(axis=-1, initial=-math.inf) > _lowest(self.dtype) / 2).all())

    def write(self, tape: ir.tape.Tape) -> ir.Value | None:
        """Writes the mask: as bool if the only step is a choice in which each query sees a key, else in the scores'
        dtype."""
        mask: ir.Value | None = None
        first = self.steps[0] if len(self.steps) == 1 else None
        if isinstance(first, Chosen) and sees_a_key(first.value, first.keeps):
            return first.value if first.keeps else tape.op("Not", [first.value])
        for step in self.steps:
            if isinstance(step, Added):
                for part in self._parts(step.value):
                    made = self._softened(tape, part)
                    mask = made if mask is None else tape.op("Add", [mask, made])
            else:
                shown = self._number(tape, 0.0) if mask is None else mask
                hidden = self._number(tape, step.fill / 2)
                mask = tape.op("Where", [step.value, *((shown, hidden) if step.keeps else (hidden, shown))])
        return mask

    def _parts(self, value: ir.Value) -> Sequence[ir.Value]:
        """Returns the value itself, or its summands if they are of different kinds."""
        node = value.producer()
        whole = kind(value, self.dtype, guarded=self.guarded)
        if not isinstance(whole, NoMatch) or node is None or node.op_type != "Add" or node.domain:
            return (value,)
        return [one for one in node.inputs if one is not None]

    def _softened(self, tape: ir.tape.Tape, value: ir.Value) -> ir.Value:
        """Returns a part of the mask, halved if its numbers swallow scores. So runtimes do not treat these keys as
        hidden."""
        if self._is_constant_as_it_is() or kind(value, self.dtype, guarded=self.guarded) is not Kind.HUGE:
            return value
        return tape.op("Mul", [value, self._number(tape, 0.5)])

    def _number(self, tape: ir.tape.Tape, number: float) -> ir.Value:
        return tape.initializer(ir.tensor(np.array(number, self.dtype.numpy())), name="mask_number")


MAY_HIDE_ALL = "may hide all keys from a query"


def kind(value: ir.Value, dtype: ir.DataType, *, guarded: bool = False, depth: int = _DEEPEST) -> Kind | NoMatch:
    """Returns the kind of an added mask, or a refusal if it is unknown. With `guarded`, NaN of the softmax become
    zeros."""
    lowest = _lowest(dtype)
    array, number = facts.constant(value), uniform(value)
    if array is not None or (number is not None and math.isfinite(number)):
        return _of_numbers(np.array(number) if array is None else array, value, lowest, guarded)
    if largest(value) < -lowest / 2:
        return Kind.SMALL
    node = value.producer()
    if node is None or node.domain or depth == 0:
        return NoMatch(f"the mask {MAY_HIDE_ALL}, and runtimes compute different results then", value)
    source = node.inputs[0]
    if node.op_type == "Where":
        return _of_choice(node, dtype, guarded, depth)
    if node.op_type == "Mul" and any(_is_huge_factor(a, b, lowest) for a, b in two_ways(node)):
        return Kind.HUGE
    if node.op_type == "Add":
        found = [kind(one, dtype, guarded=guarded, depth=depth - 1) for one in node.inputs if one is not None]
        both = found == [Kind.HUGE] * 2 and not guarded  # the sum may overflow, which the guard makes 0
        return Kind.HUGE if both else NoMatch(f"the mask {MAY_HIDE_ALL}", value)
    if node.op_type == "Trilu" and source is not None:
        number = uniform(source)
        if number is not None and is_first_column(value, wanted=False):
            return Kind.SHOWING if number == -math.inf else Kind.HUGE if number < lowest / 2 else Kind.SMALL
    if node.op_type in MOVING and source is not None:
        moved = kind(source, dtype, guarded=guarded, depth=depth - 1)
        if moved is not Kind.SHOWING or guarded or keeps_rows(node):
            return moved
    return NoMatch(f"the mask {MAY_HIDE_ALL}, and runtimes compute different results then", value)


def _of_numbers(array: npt.NDArray[Any], value: ir.Value, lowest: float, guarded: bool) -> Kind | NoMatch:
    """Returns the kind of a constant mask."""
    if np.isfinite(array).all() and (array >= lowest / 2).all():
        return Kind.SMALL
    if ((array == 0) | (np.isfinite(array) & (array < lowest / 2))).all():
        return Kind.HUGE
    hides = array == -math.inf
    shows = array.ndim > 0 and bool((~hides).any(axis=-1).all())
    if (hides | (np.isfinite(array) & (array >= lowest / 2))).all() and (shows or guarded):
        return Kind.SHOWING
    return NoMatch(f"the mask {MAY_HIDE_ALL}, and runtimes compute different results then", value)


def _of_choice(node: ir.Node, dtype: ir.DataType, guarded: bool, depth: int) -> Kind | NoMatch:
    """Returns the kind of a choice between two masks."""
    condition, *sides = node.inputs
    numbers = [uniform(one) for one in sides]
    if -math.inf in numbers:
        other = sides[1 - numbers.index(-math.inf)]
        shown = None if other is None else kind(other, dtype, depth=depth - 1)
        sees = sees_a_key(condition, numbers[1] == -math.inf)
        if shown is Kind.SMALL and (sees or (guarded and numbers[1 - numbers.index(-math.inf)] == 0)):
            return Kind.SHOWING
        return NoMatch(f"the mask {MAY_HIDE_ALL}: NaN there, where runtimes give zeros", node)
    found = {kind(one, dtype, depth=depth - 1) for one in sides if one is not None}
    if found == {Kind.HUGE}:
        return Kind.HUGE
    if found == {Kind.HUGE, Kind.SMALL} and (0 in numbers or _is_zero_otherwise(condition, sides)):
        return Kind.HUGE  # numbers that are not huge must be 0, because the whole mask is halved
    return NoMatch(f"the mask {MAY_HIDE_ALL}, and runtimes compute different results then", node)


def _is_zero_otherwise(condition: ir.Value | None, sides: Sequence[ir.Value | None]) -> bool:
    """Whether the second side is 0 wherever it is chosen: whether the condition is this side, cast to bool."""
    node = condition.producer() if condition is not None else None
    return node is not None and node.op_type == "Cast" and not node.domain and node.inputs[0] is sides[1]


def _is_huge_factor(value: ir.Value, factor: ir.Value, lowest: float) -> bool:
    """Whether integers are multiplied by a number that makes all but 0 swallow a score."""
    number = uniform(factor)
    return number is not None and abs(number) >= -lowest / 2 and math.isfinite(number) and is_whole(value)


def _lowest(dtype: ir.DataType) -> float:
    return float(np.finfo(dtype.numpy()).min)


Truths = frozenset[bool]
"""The truth values that the first column may have; none for an empty column."""
_BOTH = frozenset((False, True))
_ORDERED = {
    "Less": (True, 1),
    "LessOrEqual": (True, 0),
    "Greater": (False, 1),
    "GreaterOrEqual": (False, 0),
}
"""Tells for each comparison whether the second operand must be the larger, and the least difference."""


def sees_a_key(condition: ir.Value | None, wanted: bool) -> bool:
    """Whether at least one element of each row of a Boolean condition is `wanted`. Empty rows are allowed."""
    array = facts.constant(condition)
    if array is not None:
        return array.dtype.kind == "b" and array.ndim > 0 and bool((array == wanted).any(axis=-1).all())
    return is_first_column(condition, wanted=wanted)


def is_first_column(value: ir.Value | None, *, wanted: bool) -> bool:
    """Whether the first element of each row, along the last axis, is `wanted`. A number counts as true if it is not
    0."""
    found = _FirstColumn().of(value)
    return found is not None and found <= {wanted}


def _opposite(found: Truths | None) -> Truths | None:
    return None if found is None else frozenset(not truth for truth in found)


def _compared_with_0(walk: _FirstColumn, node: ir.Node) -> Truths | None:
    a, b = node.inputs
    return _opposite(walk.of(b if uniform(a) == 0 else a if uniform(b) == 0 else None))


def _combined(walk: _FirstColumn, node: ir.Node) -> Truths:
    first, second = (_BOTH if found is None else found for found in map(walk.of, node.inputs))
    decide = all if node.op_type == "And" else any
    return frozenset(decide(pair) for pair in itertools.product(first, second))


def _cut(walk: _FirstColumn, node: ir.Node) -> Truths | None:
    return walk.first(node) if _starts_at_0(node) else None


def keeps_rows(node: ir.Node) -> bool:
    """Whether each row of the result, along the last axis, consists of the elements of one row of the input, perhaps
    repeated."""
    if node.op_type == "Unsqueeze":
        axes, dims = facts.integers(node.inputs[1] if len(node.inputs) > 1 else None), facts.dims(node.outputs[0])
        return axes is not None and dims is not None and not {-1, len(dims) - 1} & set(axes)
    return node.op_type in ("Expand", "Identity")


def _cast(walk: _FirstColumn, node: ir.Node) -> Truths | None:
    """Follows a Cast that keeps zeros and non-zeros: from or to bool."""
    dtypes = [value.dtype for value in (*node.inputs, *node.outputs) if value is not None]
    return walk.first(node) if ir.DataType.BOOL in dtypes else None


def _starts_at_0(node: ir.Node) -> bool:
    """Whether a Slice keeps the first column in place: whether it does not cut the last axis, or cuts it from 0 on."""
    dims = facts.dims(node.inputs[0])
    if len(node.inputs) < 4 or dims is None:
        return False
    starts, axes = facts.integers(node.inputs[1]), facts.integers(node.inputs[3])
    steps = facts.integers(node.inputs[4]) if len(node.inputs) > 4 else (1,) * len(axes or ())
    if starts is None or axes is None or steps is None:
        return False
    cut = [(start, step) for start, axis, step in zip(starts, axes, steps, strict=True) if axis in (-1, len(dims) - 1)]
    return all(start == 0 and isinstance(step, int) and step > 0 for start, step in cut)


def _triangle(walk: _FirstColumn, node: ir.Node) -> Truths | None:
    """Follows a Trilu: an upper triangle above the diagonal has zeros in its first column; a lower triangle with the
    diagonal keeps the input's column."""
    given = node.inputs[1] if len(node.inputs) > 1 else None
    diagonal = 0 if given is None else (facts.integers(given) or (None,))[0]
    upper = integer(node, "upper", 1)
    if not isinstance(diagonal, int) or upper not in (0, 1):
        return None
    if upper:
        return frozenset((False,)) if diagonal >= 1 else None
    return walk.first(node) if diagonal >= 0 else None


def _compared(_: _FirstColumn, node: ir.Node) -> Truths | None:
    return next((frozenset((truth,)) for truth in (True, False) if _of_comparison(node, truth)), None)


def _of_comparison(node: ir.Node, wanted: bool) -> bool:
    """Whether a comparison makes the first column `wanted`. Along the axes before the last, the positions of one
    operand must rise or stay, and those of the other must be equal."""
    first, second = (affine(value) for value in node.inputs)
    if first is None or second is None:
        return False
    rises, apart = _ORDERED[node.op_type]
    low, high = (first, second) if rises else (second, first)
    if not wanted:
        low, high, apart = high, low, 1 - apart
    rank = max(len(low.steps), len(high.steps))
    least = symbols.subtract(high.start, apart)
    flat = all(step == 0 for step in _in_front(low, rank))
    return (
        least is not None
        and flat
        and all(symbols.at_least(step, 0) for step in _in_front(high, rank))
        and symbols.at_least(least, low.start)
    )


def _in_front(value: Affine, rank: int) -> list[facts.Element]:
    """Returns the steps along all axes but the last, of a value that is broadcast to this rank."""
    return [*(0,) * (rank - len(value.steps)), *value.steps][:-1]


class _FirstColumn(Analysis[Truths]):
    most = 16
    """Limits the values that are visited. A choice: each of them begins a search for a number, which recurses, too."""
    rules: ClassVar = {
        **dict.fromkeys(("And", "Or"), _combined),
        **dict.fromkeys(("Expand", "Identity"), Analysis.first),
        **dict.fromkeys(_ORDERED, _compared),
        "Cast": _cast,
        "Equal": _compared_with_0,
        "Not": lambda walk, node: _opposite(walk.first(node)),
        "Slice": _cut,
        "Trilu": _triangle,
        "Unsqueeze": lambda walk, node: walk.first(node) if keeps_rows(node) else None,
    }

    def fact(self, value: ir.Value) -> Truths | None:
        array = facts.constant(value)
        if array is not None:
            is_column = array.ndim > 0 and array.dtype.kind in "biuf"
            return frozenset((array[..., :1] != 0).ravel().tolist()) if is_column else None
        number = uniform(value)
        return self.computed(value) if number is None else frozenset((bool(number),))

    def join(self, a: Truths, b: Truths) -> Truths:
        """Returns the truth values of both columns."""
        return a | b
