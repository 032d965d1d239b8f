"""Excludes nodes that cannot end a match, cheaply: by the number of their operands, and the operators that make
these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.patterns.commutative import COMMUTATIVE
from onnxsmith.graph.patterns.pattern import Operand, PatternNode, Result
from onnxsmith.graph.patterns.pattern_validation import choices
from onnxsmith.graph.patterns.search_plan import Plan, operands

_Types = frozenset[str]


@dataclass(frozen=True)
class _End:
    """A node that ends the pattern: how many operands it may have, and which operators make some of them, by position
    (None means any position)."""

    most: float
    made_by: tuple[tuple[int | None, _Types], ...]

    def may_be(self, node: ir.Node) -> bool:
        given = node.inputs
        if len(given) > self.most and given[-1] is not None:
            return False
        return all(_makes(given if at is None else given[at : at + 1], types) for at, types in self.made_by)


class Producers:
    """The producers of the operands of the nodes that end a pattern. Domains, attributes and earlier nodes are not
    compared, so a node that passes may still be no match."""

    def __init__(self, plan: Plan) -> None:
        self._ends: dict[str, list[_End]] = {}
        for anchor in plan.anchors:
            node = plan.pattern.nodes[anchor.node]
            self._ends.setdefault(node.op_type, []).append(_end(plan, node))

    def may_be_those_of(self, node: ir.Node) -> bool:
        """Whether a match may end at the node."""
        ends = self._ends.get(node.op_type) or self._ends.get("") or ()
        return any(end.may_be(node) for end in ends)


def _end(plan: Plan, node: PatternNode) -> _End:
    fixed, more = operands(node)
    typed = [(index, _op_types(plan, operand)) for index, operand in enumerate(fixed)]
    in_any_order = not node.op_type or node.op_type in COMMUTATIVE
    made_by = tuple((None if in_any_order else index, types) for index, types in typed if types)
    return _End(float("inf") if more or node.attributes else len(fixed), made_by)  # an attribute may be an operand


def _op_types(plan: Plan, operand: Operand) -> _Types:
    """Returns the operators that may make an operand; empty if any operator may."""
    types = {plan.pattern.nodes[one.node].op_type if isinstance(one, Result) else "" for one in choices(operand)}
    return frozenset() if "" in types else frozenset(types)


def _makes(values: Sequence[ir.Value | None], types: _Types) -> bool:
    """Whether an operator of these types makes one of the values."""
    for value in values:
        made_by = value.producer() if value is not None else None
        if made_by is not None and made_by.op_type in types:
            return True
    return False
