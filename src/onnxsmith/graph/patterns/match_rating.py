"""Rates how far a node of a model agrees with a node of a pattern, and notes the differences."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import shortened
from onnxsmith.graph.patterns import attribute_matching, constant_matching
from onnxsmith.graph.patterns.commutative import is_commutative
from onnxsmith.graph.patterns.match_search import actual_operands
from onnxsmith.graph.patterns.pattern import (
    Anything,
    Either,
    Exact,
    Kind,
    Number,
    Numbers,
    Operand,
    PatternNode,
    Rest,
    Result,
    Variable,
)
from onnxsmith.graph.patterns.pattern_printer import attribute_text, constant_text
from onnxsmith.graph.patterns.pattern_validation import choices
from onnxsmith.graph.patterns.search_plan import Plan, operands
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk

_ALIKE = 0.6
"""Sets the ratio of common letters from which names of operators are similar: HardSigmoid and Sigmoid. A choice."""


@dataclass(frozen=True)
class Rating:
    """How much of a part of a pattern matches: its nodes, the number of nodes that do not match, and the differences.
    `agreeing` counts constants and names that agree, and operators with similar names."""

    nodes: Mapping[int, ir.Node] = field(default_factory=dict)
    bindings: Mapping[str, ir.Value] = field(default_factory=dict)
    missing: int = 0
    agreeing: int = 0
    notes: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[float, ...]:
        """The sort key: a larger rank is a nearer match."""
        total = len(self.nodes) + self.missing
        return (len(self.nodes) / total if total else 1.0, -len(self.notes), self.agreeing)


class Rater:
    """Rates nodes of graphs that import these opset versions."""

    def __init__(self, plan: Plan, imports: Mapping[str, int]) -> None:
        self._plan, self._imports = plan, imports
        self._known: dict[tuple[int, ir.Node], Rating] = {}
        self._sizes = [self._size(index) for index in range(len(plan.pattern.nodes))]

    def at(self, index: int, node: ir.Node) -> Rating:
        """Rates a node that has the same operator as this node of the pattern."""
        found = self._known.get((index, node))
        if found is None:
            found = self._known[index, node] = self._rated(index, node)
        return found

    def size(self, index: int) -> int:
        """Returns the number of the pattern's nodes that a node depends on, the node included."""
        return self._sizes[index]

    def _size(self, index: int) -> int:
        seen: set[int] = set()
        queue = [index]
        while queue:
            at = queue.pop()
            if at not in seen:
                seen.add(at)
                inner = self._plan.pattern.nodes[at].inputs
                queue += [one.node for operand in inner for one in choices(operand) if isinstance(one, Result)]
        return len(seen)

    def _rated(self, index: int, node: ir.Node) -> Rating:
        wanted = self._plan.pattern.nodes[index]
        version = self._imports.get(node.domain, 0)
        rating = Rating({index: node}, notes=tuple(mismatch_of_attributes(wanted, node, version)))
        fixed, more = operands(wanted)
        given = actual_operands(wanted, node, version)
        if len(given) > len(fixed) and not more:
            rating = _noted(rating, mismatch_of_operands(len(fixed), len(given), node))
        padded = given + [None] * (len(fixed) - len(given))
        if is_commutative(node) and len(padded) >= 2:
            return self._best_order(rating, fixed, padded, node)
        return self._row(rating, fixed, padded, node)

    def _best_order(
        self, rating: Rating, fixed: Sequence[Operand], given: Sequence[ir.Value | None], node: ir.Node
    ) -> Rating:
        """Rates commutative operands. Tries both orders of two; of more, gives each the best remaining value."""
        if len(given) == 2:
            orders = (self._row(rating, fixed, given, node), self._row(rating, fixed, given[::-1], node))
            return max(orders, key=lambda one: one.rank)
        left = list(given)
        for operand in sorted(fixed, key=self._plan.is_free):
            rated = [(self._operand(operand, value, node), value) for value in left]
            if not rated:
                break
            best, value = max(rated, key=lambda one: one[0].rank)
            left.remove(value)
            rating = self._both(rating, best)
        return rating

    def _row(self, rating: Rating, fixed: Sequence[Operand], given: Sequence[ir.Value | None], node: ir.Node) -> Rating:
        for operand, value in zip(fixed, given, strict=False):
            rating = self._both(rating, self._operand(operand, value, node))
        return rating

    def _operand(self, operand: Operand, value: ir.Value | None, reader: ir.Node) -> Rating:
        label = walk.node_label(reader)
        if operand is None or value is None:
            if operand is None and value is None:
                return Rating()
            note = f"{label} reads {value.name}, too" if value is not None else f"an operand of {label} is left out"
            return Rating(notes=(note,), missing=self._wanted(operand))
        if isinstance(operand, Variable):
            fits = constant_matching.is_kind(value, operand.kind)
            return Rating(bindings={operand.name: value}, notes=() if fits else (mismatch_of_variable(value, operand),))
        if isinstance(operand, Result):
            return self._result(operand, value)
        if isinstance(operand, Either):
            return max((self._operand(one, value, reader) for one in operand.choices), key=lambda one: one.rank)
        if isinstance(operand, Anything | Rest):
            return Rating()
        if constant_matching.equals(value, operand):
            return Rating(agreeing=1)
        return Rating(notes=(mismatch_of_constant(value, operand),))

    def _wanted(self, operand: Operand) -> int:
        return self._sizes[operand.node] if isinstance(operand, Result) else 0

    def _result(self, operand: Result, value: ir.Value) -> Rating:
        """Rates the producer of a value. If its operator differs, also rates the operator before it."""
        wanted = self._plan.pattern.nodes[operand.node]
        node = value.producer()
        if node is None:
            return Rating(missing=self._sizes[operand.node], notes=(mismatch_of_producer(value, wanted),))
        if not wanted.op_type or (node.domain, node.op_type) == (wanted.domain, wanted.op_type):
            rating = self.at(operand.node, node)
            if value.index() != operand.output:
                note = f"output {value.index()} of {walk.node_label(node)} is read (pattern: output {operand.output})"
                return _noted(rating, note)
            return rating
        before = [
            one.producer()
            for one in node.inputs
            if one is not None and one.producer() is not None and one.index() == operand.output
        ]
        behind = next((one for one in before if one and walk.op_name(one) == wanted.title), None)
        if behind is not None:
            between = f"`{walk.op_name(node)}` {walk.node_label(node)} stands after {walk.node_label(behind)}"
            return _noted(self.at(operand.node, behind), between)
        likeness = difflib.SequenceMatcher(None, node.op_type, wanted.op_type).ratio() >= _ALIKE
        note = mismatch_of_producer(value, wanted)
        return Rating(missing=self._sizes[operand.node], agreeing=int(likeness), notes=(note,))

    def _both(self, a: Rating, b: Rating) -> Rating:
        agreeing = a.agreeing + b.agreeing
        notes = [*a.notes, *(note for note in b.notes if note not in a.notes)]
        for name, value in b.bindings.items():
            other = a.bindings.get(name)
            if other is not None and not constant_matching.same(other, value, self._plan.kinds[name]):
                notes.append(f"{name} stands for both {other.name} and {value.name}, which differ")
            else:
                agreeing += other is not None
        nodes = {**b.nodes, **a.nodes}
        missing = a.missing + b.missing
        return Rating(nodes, {**b.bindings, **a.bindings}, missing, agreeing, tuple(notes))


def _noted(rating: Rating, note: str) -> Rating:
    return Rating(rating.nodes, rating.bindings, rating.missing, rating.agreeing, (*rating.notes, note))


# Describes in words how a node of a model differs from a node of a pattern.

_SHOWN = 4
"""Limits the elements of a constant that a sentence shows. A choice."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def mismatch_of_attributes(wanted: PatternNode, node: ir.Node, version: int) -> list[str]:
    """Returns a sentence for each attribute that differs."""
    found = []
    for name, value in wanted.attributes:
        place = attribute_matching.operand_place(node, name, version) if name not in node.attributes else None
        if place is not None:
            operand = node.inputs[place] if place < len(node.inputs) else None
            if not attribute_matching.operand_equals(operand, value):
                found.append(f"{name} is {held(operand)} at {walk.node_label(node)} (pattern: {attribute_text(value)})")
            continue
        actual = attribute_matching.given(node, name, version)
        if not attribute_matching.attribute_equals(actual, value, attribute_matching.default(node, name, version)):
            pattern = f"{name}={shortened(attribute_text(value), 60)}"
            found.append(f"{_assigned(name, actual)} at {walk.node_label(node)} (pattern: {pattern})")
    return found


def _assigned(name: str, actual: ir.Attr | None) -> str:
    if actual is None:
        return f"no {name}"
    if actual.is_ref():
        return f"{name} is the function's attribute {actual.ref_attr_name}"
    value: Any = actual.value
    if isinstance(value, ir.TensorProtocol):
        return f"{name} is another tensor"
    if isinstance(value, float):
        return f"{name}={attribute_text(value) if value == value and abs(value) != float('inf') else value}"
    return f"{name}={value!r}" if not isinstance(value, str) else f'{name}="{value}"'


def mismatch_of_constant(value: ir.Value, wanted: Number | Numbers | Exact) -> str:
    """Says that a value is not the constant of the pattern."""
    text = shortened(constant_text(wanted), 60)
    if not facts.is_constant(value):
        return f"{value.name} is not a constant, but the pattern requires {text}"
    return f"the constant {value.name} is {held(value)}, but the pattern requires {text}"


def held(value: ir.Value | None) -> str:
    """Describes a constant: by its elements if they are few, otherwise by its dtype and shape."""
    if value is None:
        return "left out"
    count = constant_matching.number_of_elements(value)
    if count is None:
        return f"the value {value.name}"
    tensor = const_tensor(value)
    assert tensor is not None
    if count > _SHOWN:
        return f"{tensor.dtype.name.lower()}[{','.join(map(str, tensor.shape.numpy()))}]"
    elements = facts.constant(value)
    assert elements is not None
    shown = elements.ravel()[0].item() if count == 1 and elements.ndim < 1 and elements.dtype.kind != "O" else None
    return str(elements.tolist()) if shown is None else str(elements)


def mismatch_of_variable(value: ir.Value, wanted: Variable) -> str:
    """Says that a variable of this kind may not stand for the value."""
    if wanted.kind is Kind.SCALAR and facts.is_constant(value):
        return f"{value.name} is {held(value)}, but {wanted.name} must be a constant with one element"
    return f"{value.name} is not a constant, but {wanted.name} must be one"


def mismatch_of_operands(wanted: int, given: int, node: ir.Node) -> str:
    """Says that the number of operands differs."""
    if given == wanted + 1 and given <= len(_ORDINALS):
        return f"a {_ORDINALS[wanted]} operand is there at {walk.node_label(node)}"
    return f"{walk.node_label(node)} has {given} operands (pattern: {wanted})"


def mismatch_of_producer(value: ir.Value, wanted: PatternNode) -> str:
    """Says that a different operator, or no operator, makes a value."""
    node = value.producer()
    if node is not None:
        found = f"`{walk.op_name(node)}` {walk.node_label(node)}"
    elif facts.is_constant(value):
        found = f"the constant {value.name}"
    else:
        found = f"the {'graph input' if value.is_graph_input() else 'value'} {value.name}"
    return f"`{wanted.title}` expected, {found} found"
