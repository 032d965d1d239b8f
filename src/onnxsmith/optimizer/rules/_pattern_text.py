"""Reads the ONNX text of a pattern and its replacement, and writes the replacement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.patterns.match_filter import Producers
from onnxsmith.graph.patterns.pattern import AttributeVariable, Operand, Pattern, Result, Variable
from onnxsmith.graph.patterns.pattern_conversion import pattern_of, replacement_of
from onnxsmith.graph.patterns.search_plan import Plan


@dataclass(frozen=True)
class Text:
    """Holds a pattern and a replacement, which are read once. `keeps` are the names that the replacement reads."""

    plan: Plan
    producers: Producers
    replacement: Pattern
    keeps: frozenset[str]


@cache
def read(pattern: str, replacement: str) -> Text:
    """Reads a pattern and its replacement from their ONNX text."""
    plan, by = Plan(pattern_of(pattern), apart=None), replacement_of(replacement)
    return Text(plan, Producers(plan), by, frozenset(one.name for one in by.variables))


def _attribute(name: str, wanted: Any, values: Mapping[str, Any]) -> Any:
    """Returns the value of an attribute of the replacement; None leaves it out."""
    value = values[wanted.name] if isinstance(wanted, AttributeVariable) else wanted
    return ir.Attr(name, value.type, value.value, value.ref_attr_name) if isinstance(value, ir.Attr) else value


def written(tape: ir.tape.Tape, by: Pattern, values: Mapping[str, Any]) -> ir.Value:
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
