"""Defines the base class of rules that are written as a pattern and its replacement; `docs/patterns.md` has the
notation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.patterns.match import Match as Found
from onnxsmith.graph.patterns.match_filter import Producers
from onnxsmith.graph.patterns.pattern import AttributeVariable, Operand, Pattern, Result, Variable
from onnxsmith.graph.patterns.pattern_conversion import pattern_of, replacement_of
from onnxsmith.graph.patterns.pattern_search import every_match
from onnxsmith.graph.patterns.search_plan import Plan
from onnxsmith.optimizer.rules._patterns import read_elsewhere, too_old
from onnxsmith.optimizer.rules.base import Match, NoMatch, Rule

Answer = Mapping[str, Any] | NoMatch | None
"""Values for names in the replacement, in addition to those of the match; arrays become constants. None means no
match."""


class PatternRule(Rule):
    """Replaces each match of `pattern` that `check` allows by `replacement`. Both are ONNX text; `replacement` reads
    variables and results of the pattern by name. All nodes of a match are in one graph."""

    pattern: ClassVar[str]
    replacement: ClassVar[str]
    since: ClassVar[int] = 0
    """The opset below which the replacement cannot be written: a match is refused there."""
    form: ClassVar[str] = ""
    """The form of the replacement's operator that opset `since` introduced, if earlier opsets have another form."""
    sole_reader: ClassVar[bool] = False
    """Whether a match is refused if another node reads a result that the replacement does not keep."""

    def check(self, found: Found) -> Answer:
        """Returns further values for the replacement if the match may be replaced."""
        return {}

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        text = _read(self.pattern, self.replacement)
        if not text.producers.may_be_those_of(node):
            return None
        for found in every_match(text.plan, node):
            more = self.check(found)
            if isinstance(more, NoMatch):
                return more
            if more is not None:
                every = tuple(one for one in found.taken if not text.keeps & found.names(one))
                refusal = read_elsewhere(every) if self.sole_reader else None
                if self.since:
                    refusal = refusal or too_old(node, self._made(text), self.since)
                return refusal or Match(node, every, {"values": {**found.values, **found.attributes, **more}})
        return None

    def _made(self, text: _Text) -> str:
        made = text.replacement.nodes[-1].op_type
        return f"{made} with {self.form}" if self.form else made

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        return _written(tape, _read(self.pattern, self.replacement).replacement, match.found["values"])


@dataclass(frozen=True)
class _Text:
    """A pattern and a replacement, read once. `keeps` are the names that the replacement reads."""

    plan: Plan
    producers: Producers
    replacement: Pattern
    keeps: frozenset[str]


@cache
def _read(pattern: str, replacement: str) -> _Text:
    plan, by = Plan(pattern_of(pattern), apart=None), replacement_of(replacement)
    return _Text(plan, Producers(plan), by, frozenset(one.name for one in by.variables))


def _attribute(name: str, wanted: Any, values: Mapping[str, Any]) -> Any:
    """Returns the value of an attribute of the replacement; None leaves it out."""
    value = values[wanted.name] if isinstance(wanted, AttributeVariable) else wanted
    return ir.Attr(name, value.type, value.value, value.ref_attr_name) if isinstance(value, ir.Attr) else value


def _written(tape: ir.tape.Tape, by: Pattern, values: Mapping[str, Any]) -> ir.Value:
    """Makes the nodes of the replacement, and returns its result."""
    made: list[ir.Value] = []

    def operand(one: Operand) -> ir.Value | None:
        if isinstance(one, Result):
            return made[one.node]
        assert isinstance(one, Variable), one
        value: ir.Value = values[one.name]
        return tape.initializer(ir.Tensor(value), name=one.name) if isinstance(value, np.ndarray) else value

    for node in by.nodes:
        given = {key: _attribute(key, one, values) for key, one in node.attributes}
        attributes = {name: value for name, value in given.items() if value is not None}
        inputs = [operand(one) for one in node.inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        made.append(tape.op(node.op_type, inputs, attributes, domain=node.domain))
    answer = operand(by.outputs[0])
    assert answer is not None
    return answer
