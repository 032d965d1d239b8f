"""Converts a model to an earlier opset: writes each operator in its form of that opset.

The changes of an operator since that opset are undone one by one, the last change first. A change is undone by its file
in `lowerings/`, if there is one, and by leaving out attributes without effect. An operator that did not exist, or whose
earlier form takes other dtypes, is replaced by its body, if the ONNX specification gives one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import provenance, schema, type_texts, walk
from onnxsmith.graph.structure.attribute_keys import exact
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.schema import Parameter, Schema
from onnxsmith.graph.surgery.declared_types import DeclaredTypes
from onnxsmith.graph.surgery.expansion import expand
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.graph.surgery.lowerings.base import lowerings
from onnxsmith.graph.surgery.node_insertion import Inserter, release

_find = cache(schema.find)


@dataclass(frozen=True)
class Stuck:
    """A node that cannot be written in the earlier opset: its operator and name, its origin in the source, and the
    reason."""

    node: str
    source: str
    reason: str


@dataclass(frozen=True)
class Lowered:
    """A copy of a model in the earlier opset, except for the nodes that are `stuck`."""

    model: ir.Model
    stuck: tuple[Stuck, ...]


def lowered(model: ir.Model, target: int) -> Lowered:
    """Writes a copy of the model (weights shared) in opset `target`, which is lower than the model's.

    Functions stay functions, unless a node in a function is stuck. Then all functions are inlined, because dtypes and
    attribute values are unknown inside a function.
    """
    found = _lowered(model, target)
    if found.stuck and model.functions:
        flat, reason = inlined(model)
        return _lowered(flat, target) if not reason else found
    return found


def _lowered(model: ir.Model, target: int) -> Lowered:
    copy = inferred(model)[0]
    names = Names(copy)
    declared = DeclaredTypes(model, copy)
    stuck: list[Stuck] = []
    owners: list[ir.Graph | ir.Function] = [copy.graph, *copy.functions.values()]
    for owner in owners:
        imported = owner.opset_imports if isinstance(owner, ir.Function) else copy.opset_imports
        version = imported.get("", imported.get("ai.onnx", copy.opset_imports.get("", 0)))
        for node in list(walk.nodes(owner)):
            if node.domain in ("", "ai.onnx") and version > target:
                stuck += _lower(node, version, target, names)
        if version > target:
            imported.pop("ai.onnx", None)
            imported[""] = target
    for graph in walk.graphs(copy):
        if "" in graph.opset_imports:
            graph.opset_imports[""] = target
    declared.restore(copy)
    facts.forget(copy)
    return Lowered(copy, tuple(stuck))


def _lower(node: ir.Node, version: int, target: int, names: Names) -> list[Stuck]:
    """Lowers a node from opset `version` to `target`, and then the nodes that replace it."""
    label, source = f"{node.op_type} {walk.node_label(node)}", provenance.of(node).source
    while True:
        newer = _find(node.op_type, "", version)
        if newer is None or newer.since <= target:
            node.version = None
            return []
        before = newer.since - 1
        write = Inserter(node, f"opset{target}_", before, names.free)
        operands = [value for value in node.inputs if value is not None]
        made, written, reason = _changed(node, newer, version, target, write)
        if reason:
            return [Stuck(label, source, reason)]
        provenance.inherit(made, [node])
        for new in made:  # each operator body numbers its nodes from 0, and onnxruntime requires unique names
            new.name = names.free(f"{node.name}_{new.op_type}") if node.name else None
        gone = node.graph is None
        for value in operands if gone else ():
            release(value)
        found = [one for new in made for one in _lower(new, written, target, names)]
        if found:
            return [Stuck(label, source, f"in the nodes that replace it, {found[0].node}: {found[0].reason}")]
        if gone:
            return []
        version = before


def _changed(
    node: ir.Node, newer: schema.Schema, version: int, target: int, write: Inserter
) -> tuple[list[ir.Node], int, str]:
    """Undoes one change. Returns the new nodes, their opset, and the reason if undoing is impossible."""
    if reason := newer.misfit(node):
        return [], 0, reason
    older = _find(node.op_type, "", newer.since - 1)
    if older is not None and not older.deprecated:
        change = lowerings().get((node.op_type, newer.since))
        reason = change.lowered(node, write) if change is not None else ""
        if not reason and node.graph is not None:
            reason = write_older(node, newer, older)
        if not reason:
            return write.made, newer.since - 1, ""
    elif change := lowerings().get((node.op_type, newer.since)):
        reason = change.lowered(node, write)
        if not reason:
            return write.made, newer.since - 1, ""
    expanded = expand(node, version, target, write)
    if isinstance(expanded, str):
        return [], 0, reason or expanded
    return *expanded, ""


# Writes a node in an earlier form of its operator, if the earlier form can express it.

_INTRODUCED: dict[tuple[str, str], dict[str, int]] = {
    ("Pad", "mode"): {"wrap": 19},
    ("Resize", "coordinate_transformation_mode"): {"half_pixel_symmetric": 19},
    ("ScatterElements", "reduction"): {"max": 18, "min": 18},
    ("ScatterND", "reduction"): {"max": 18, "min": 18},
}
"""Holds the opset since which an attribute may have a certain value (the operators' descriptions in onnx,
Changelog.md)."""

_ALWAYS: dict[tuple[str, str], Any] = {
    ("RoiAlign", "coordinate_transformation_mode"): "output_half_pixel",
    ("BatchNormalization", "spatial"): 1,
}
"""Holds the attribute value to which the form without the attribute corresponds, if it is not the default of the form
with it."""


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
    for index, formal in enumerate(older.inputs):
        if not (formal.optional or formal.variadic) and (index >= len(node.inputs) or node.inputs[index] is None):
            return f"`{formal.name}` may be left out since opset {newer.since}"
    return ""


def _dtypes(node: ir.Node, newer: Schema, older: Schema) -> str:
    seen: dict[str, tuple[str, str]] = {}
    for values, find in ((node.inputs, older.input), (node.outputs, older.output)):
        for index, value in enumerate(values):
            formal: Parameter | None = find(index)
            text = "" if value is None or value.type is None else type_texts.type_text(value)
            if formal is not None and formal.types and text and text not in formal.types:
                return f"{text} is allowed for `{formal.name}` since opset {newer.since}"
            if formal is not None and text and not (formal.variadic and formal.mixed):
                first = seen.setdefault(formal.type, (formal.name, text))
                if first[1] != text and "(" not in formal.type:
                    return f"`{first[0]}` and `{formal.name}` may have different dtypes since opset {newer.since}"
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
            return (
                f"`{name}` has its default value, but was always {_ALWAYS[node.op_type, name]} before opset "
                f"{newer.since}"
            )
    for name in [name for name in node.attributes if name not in older.attributes]:
        del node.attributes[name]
    for name, default in newer.defaults.items():
        before = older.defaults.get(name)
        changed = default is not None and (before is None or exact(before) != exact(default))
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
        return exact(attribute) == exact(default)
    return attribute.type == ir.AttributeType.INTS and all(one == 1 for one in attribute.as_ints())


def _shown(attribute: ir.Attr) -> str:
    return f"`{attribute.ref_attr_name}` of the function" if attribute.is_ref() else str(attribute.value)
