"""Compares the attributes of a node with those of a pattern. An attribute that is left out has the schema's default
value."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.patterns.constant_matching import equals, is_number
from onnxsmith.graph.patterns.pattern import Absent, AttributeVariable, Exact, Number, Numbers, PatternNode, Wanted
from onnxsmith.graph.patterns.pattern_tracing import exact
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import attribute_keys, schema


@cache
def form(op_type: str, domain: str, version: int) -> schema.Schema | None:
    """Returns the schema of the operator at a version of its domain."""
    return schema.find(op_type, domain, version) if version > 0 else None


def given(node: ir.Node, name: str, version: int) -> ir.Attr | None:
    """Returns an attribute of the node, or the default that its schema has; None if it has neither."""
    found = node.attributes.get(name)
    return found if found is not None else default(node, name, version)


def default(node: ir.Node, name: str, version: int) -> ir.Attr | None:
    """Returns the default that the node's schema has for an attribute; None without one."""
    schema_ = form(node.op_type, node.domain, version)
    return schema_.defaults.get(name) if schema_ is not None else None


def operand_place(node: ir.Node, name: str, version: int) -> int | None:
    """Returns the position of the operand with this name. An older opset may have it as an attribute."""
    schema_ = form(node.op_type, node.domain, version)
    names = [one.name for one in schema_.inputs] if schema_ is not None else []
    return names.index(name) if name in names else None


def named_operands(wanted: PatternNode, node: ir.Node, version: int) -> dict[str, int]:
    """Returns the attributes of the pattern that are operands at the node's opset, with their positions."""
    found = {}
    for name, _ in wanted.attributes:
        place = operand_place(node, name, version) if name not in node.attributes else None
        if place is not None:
            found[name] = place
    return found


def operand_equals(value: ir.Value | None, wanted: Wanted) -> bool:
    """Whether an operand has the value that the pattern demands of the attribute. In an older opset it was an
    attribute."""
    if isinstance(wanted, Absent) or value is None:
        return isinstance(wanted, Absent) and value is None
    if isinstance(wanted, AttributeVariable):
        return of_operand("", value) is not None
    if isinstance(wanted, str):
        return False
    if isinstance(wanted, tuple):
        return equals(value, Numbers(wanted))
    return equals(value, wanted if isinstance(wanted, Number | Exact) else Number(wanted))


def of_operand(name: str, value: ir.Value | None) -> ir.Attr | None:
    """Converts a constant list or number to the attribute that an older opset has; returns None for other values."""
    array = facts.constant(value)
    if array is None or array.ndim > 1 or array.dtype.kind not in "iufb":
        return None
    if array.dtype.kind == "f":
        numbers = [float(one) for one in array.ravel()]
        return ir.AttrFloat32s(name, numbers) if array.ndim else ir.AttrFloat32(name, numbers[0])
    whole = [int(one) for one in array.ravel()]
    return ir.AttrInt64s(name, whole) if array.ndim else ir.AttrInt64(name, whole[0])


def attribute_equals(attribute: ir.Attr | None, wanted: Wanted, default: ir.Attr | None) -> bool:
    """Whether an attribute has the value that the pattern demands. A reference to a function's attribute has no known
    value."""
    if isinstance(wanted, Absent):
        return attribute is None or (default is not None and same_attribute(attribute, default))
    if isinstance(wanted, AttributeVariable):
        return True
    if attribute is None or attribute.is_ref():
        return False
    value: Any = attribute.value
    if isinstance(wanted, Exact):
        return attribute.type == ir.AttributeType.TENSOR and exact(attribute.as_tensor()) == wanted
    if isinstance(wanted, Number):
        numeric = isinstance(value, int | float)
        return numeric and is_number(value, np.asarray(value).dtype, wanted.value, wanted.rel)
    if isinstance(wanted, tuple):
        return isinstance(value, tuple | list) and [_plain(one) for one in value] == [_plain(one) for one in wanted]
    return not isinstance(value, tuple | list) and bool(_plain(value) == _plain(wanted))


def same_attribute(a: ir.Attr | None, b: ir.Attr | None) -> bool:
    """Whether two attributes are exactly equal. None stands for an attribute that is left out."""
    if a is None or b is None:
        return a is b
    return attribute_keys.exact(a) == attribute_keys.exact(b)


def _plain(value: Any) -> Any:
    """Returns the value in the form in which it is stored, to compare: floats as float32."""
    if isinstance(value, float):
        return float(np.float32(value))
    return value.decode(errors="replace") if isinstance(value, bytes) else value
