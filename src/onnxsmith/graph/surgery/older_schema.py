"""Writes a node in an earlier form of its operator, if the earlier form can express it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxsmith.graph.structure import type_texts
from onnxsmith.graph.structure.schema import Parameter, Schema

_INTRODUCED: dict[tuple[str, str], dict[str, int]] = {
    ("Pad", "mode"): {"wrap": 19},
    ("Resize", "coordinate_transformation_mode"): {"half_pixel_symmetric": 19},
    ("ScatterElements", "reduction"): {"max": 18, "min": 18},
    ("ScatterND", "reduction"): {"max": 18, "min": 18},
}
"""The opset since which an attribute may have a certain value (the operators' descriptions in onnx, Changelog.md)."""

_ALWAYS: dict[tuple[str, str], Any] = {
    ("RoiAlign", "coordinate_transformation_mode"): "output_half_pixel",
    ("BatchNormalization", "spatial"): 1,
}
"""The attribute value that the form without the attribute corresponds to, if it is not the default of the form with
it."""


def write_older(node: ir.Node, newer: Schema, older: Schema) -> str:
    """Removes the attributes without effect that the earlier form lacks, and returns "". If the earlier form cannot
    express the node, changes nothing and returns the reason."""
    return (
        _operands(node, newer, older)
        or _dtypes(node, newer, older)
        or _values(node, newer.since)
        or _attributes(node, newer, older)
    )


def _operands(node: ir.Node, newer: Schema, older: Schema) -> str:
    for values, find, kind in ((node.inputs, older.input, "input"), (node.outputs, older.output, "output")):
        for index, value in enumerate(values):
            if value is not None and find(index) is None and (kind == "input" or value.name):
                return f"{kind} {index} exists since opset {newer.since}"
    return ""


def _dtypes(node: ir.Node, newer: Schema, older: Schema) -> str:
    for values, find in ((node.inputs, older.input), (node.outputs, older.output)):
        for index, value in enumerate(values):
            formal: Parameter | None = find(index)
            text = "" if value is None or value.type is None else type_texts.type_text(value)
            if formal is not None and formal.types and text and text not in formal.types:
                return f"{text} is allowed for `{formal.name}` since opset {newer.since}"
    return ""


def _values(node: ir.Node, since: int) -> str:
    for (op_type, name), values in _INTRODUCED.items():
        if op_type == node.op_type and values.get(node.attributes.get_string(name, "")) == since:
            return f"`{name}` may be {node.attributes.get_string(name)} since opset {since}"
    return ""


def _attributes(node: ir.Node, newer: Schema, older: Schema) -> str:
    for name, attribute in node.attributes.items():
        if name not in older.attributes and name in newer.attributes and not _is_neutral(node, attribute, newer):
            return f"`{name}` is {_shown(attribute)}; the attribute exists since opset {newer.since}"
    for name in newer.attributes:
        if name not in node.attributes and name not in older.attributes and (node.op_type, name) in _ALWAYS:
            return f"`{name}` has its default, and was always {_ALWAYS[node.op_type, name]} before opset {newer.since}"
    for name in [name for name in node.attributes if name not in older.attributes]:
        del node.attributes[name]
    for name, default in newer.defaults.items():
        before = older.defaults.get(name)
        changed = default is not None and (before is None or before.value != default.value)
        if default is not None and changed and name in older.attributes and name not in node.attributes:
            node.attributes[name] = default
    return ""


def _is_neutral(node: ir.Node, attribute: ir.Attr, newer: Schema) -> bool:
    """Whether the attribute has no effect: it has its default, or it is a list of ones (dilations, steps)."""
    if attribute.is_ref():
        return False
    always = _ALWAYS.get((node.op_type, attribute.name))
    if always is not None:
        return bool(attribute.value == always)
    default = newer.defaults.get(attribute.name)
    if default is not None:
        return bool(attribute.value == default.value)
    return attribute.type == ir.AttributeType.INTS and all(one == 1 for one in attribute.as_ints())


def _shown(attribute: ir.Attr) -> str:
    return f"`{attribute.ref_attr_name}` of the function" if attribute.is_ref() else str(attribute.value)
