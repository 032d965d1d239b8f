"""Describes in words how a node of a model differs from a node of a pattern."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxsmith.base.words import shortened
from onnxsmith.graph.patterns import attribute_matching, constant_matching
from onnxsmith.graph.patterns.pattern import Exact, Kind, Number, Numbers, PatternNode, Variable
from onnxsmith.graph.patterns.pattern_printer import attribute_text, constant_text
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk

_SHOWN = 4
"""The most elements of a constant that a sentence shows. A choice."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")


def of_attributes(wanted: PatternNode, node: ir.Node, version: int) -> list[str]:
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


def of_constant(value: ir.Value, wanted: Number | Numbers | Exact) -> str:
    """Says that a value is not the constant of the pattern."""
    text = shortened(constant_text(wanted), 60)
    if not facts.is_constant(value):
        return f"{value.name} is no constant, the pattern wants {text}"
    return f"the constant {value.name} is {held(value)}, the pattern wants {text}"


def held(value: ir.Value | None) -> str:
    """Describes a constant: by its elements if they are few, otherwise by its dtype and shape."""
    if value is None:
        return "left out"
    count = constant_matching.number_of_elements(value)
    if count is None:
        return f"the value {value.name}"
    tensor = ir.convenience.get_const_tensor(value)
    assert tensor is not None
    if count > _SHOWN:
        return f"{tensor.dtype.name.lower()}[{','.join(map(str, tensor.shape.numpy()))}]"
    elements = facts.constant(value)
    assert elements is not None
    shown = elements.ravel()[0].item() if count == 1 and elements.ndim < 1 and elements.dtype.kind != "O" else None
    return str(elements.tolist()) if shown is None else str(elements)


def of_variable(value: ir.Value, wanted: Variable) -> str:
    """Says that a variable of this kind may not stand for the value."""
    if wanted.kind is Kind.SCALAR and facts.is_constant(value):
        return f"{value.name} is {held(value)}, {wanted.name} is a constant with one element"
    return f"{value.name} is no constant, {wanted.name} is one"


def of_operands(wanted: int, given: int, node: ir.Node) -> str:
    """Says that the number of operands differs."""
    if given == wanted + 1 and given <= len(_ORDINALS):
        return f"a {_ORDINALS[wanted]} operand is there at {walk.node_label(node)}"
    return f"{walk.node_label(node)} has {given} operands (pattern: {wanted})"


def of_producer(value: ir.Value, wanted: PatternNode) -> str:
    """Says that a different operator, or no operator, makes a value."""
    node = value.producer()
    if node is not None:
        found = f"`{walk.op_name(node)}` {walk.node_label(node)}"
    elif facts.is_constant(value):
        found = f"the constant {value.name}"
    else:
        found = f"the {'graph input' if value.is_graph_input() else 'value'} {value.name}"
    return f"`{wanted.title}` expected, {found} found"
