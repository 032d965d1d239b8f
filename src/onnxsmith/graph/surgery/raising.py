"""Raises a model to a newer opset: writes each operator in its form of that opset.

The changes of an operator up to that opset are made one by one, the first change first. A change is made by its class
in `raisings/`. Without a class, the node stays as it is, if the later form takes its operands and attributes. Functions
whose operators mean the same in both opsets stay functions; the others are inlined.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import attribute_keys, provenance, schema, type_texts, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.surgery.declared_types import DeclaredTypes
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.graph.surgery.node_insertion import Inserter, release
from onnxsmith.graph.surgery.raisings.base import raisings

_ONNX = ("", "ai.onnx")

_find = cache(schema.find)


def raised(model: ir.Model, target: int) -> tuple[ir.Model, list[str]]:
    """Returns a copy of the model (weights shared) in opset `target`, newer than its own, and an empty list. On
    failure, the list names the nodes that cannot be raised, each with the reason."""
    kept = _unchanged(model, target)
    copy, errors = _raised(model, target, kept)
    if errors and kept:  # a node may need a shape or a dtype that follows from a function's body
        copy, errors = _raised(model, target, set())
    return copy, errors


def _raised(model: ir.Model, target: int, kept: set[ir.OperatorIdentifier]) -> tuple[ir.Model, list[str]]:
    flat, trouble = inlined(model, only=[name for name in model.functions if name not in kept])
    if trouble:
        return flat, [trouble]
    version = _version(flat.opset_imports, 0)
    rewrites = any(_is_rewritten(node, version, target) for node in walk.nodes(flat.graph))
    copy = inferred(flat)[0] if rewrites else flat
    declared = DeclaredTypes(flat, copy)
    names = Names(copy)
    errors: list[str] = []
    for node in list(walk.nodes(copy.graph)):
        if node.domain in _ONNX:
            errors += _raise(node, version, target, names)
    declared.restore(copy)
    facts.forget(copy)
    if errors:
        return copy, errors
    _import(copy, target)
    return copy, []


def _is_rewritten(node: ir.Node, version: int, target: int) -> bool:
    """Whether a change between the two opsets has a class, which may need shapes and dtypes."""
    return node.domain in _ONNX and any(
        op_type == node.op_type and version < since <= target for op_type, since in raisings()
    )


def _raise(node: ir.Node, version: int, target: int, names: Names) -> list[str]:
    """Raises a node from opset `version` to `target`, and then the nodes that replace it. Returns the reason if that is
    impossible."""
    label = f"{node.op_type} {walk.node_label(node)}"
    for since in schema.versions(node.op_type, ""):
        if not version < since <= target:
            continue
        write = Inserter(node, f"opset{target}_", since, names.free)
        operands = [value for value in node.inputs if value is not None]
        reason = _changed(node, since, write)
        if reason:
            return [f"{label}: {reason}"]
        provenance.inherit(write.made, [node])
        for new in write.made:
            new.name = names.free(f"{node.name}_{new.op_type}") if node.name else None
        gone = node.graph is None
        for value in operands if gone else ():
            release(value)
        errors = [error for new in write.made for error in _raise(new, since, target, names)]
        if errors:
            return [f"{label}: in the nodes that replace it, {errors[0]}"]
        if gone:
            return []
    node.version = None
    return []


def _changed(node: ir.Node, since: int, write: Inserter) -> str:
    """Makes one change. Returns the reason if that is impossible."""
    change = raisings().get((node.op_type, since))
    older, newer = _find(node.op_type, "", since - 1), _find(node.op_type, "", since)
    if older is None:
        return ""  # an operator that is newer than the model's opset is read in its first form
    reason = older.misfit(node)
    if not reason and change is not None:
        reason = change.rewrite(node, write)
    if reason or node.graph is None or newer is None:
        return reason
    return _refused(node, newer) or _write_defaults(node, older, newer)


def _refused(node: ir.Node, newer: schema.Schema) -> str:
    """Returns the reason for which the newer form cannot express the node."""
    if newer.deprecated:
        return f"opset {newer.since} no longer has this operator"
    for name in node.attributes:
        if name not in newer.attributes:
            return f"the attribute `{name}` does not exist since opset {newer.since}"
    for values, formals, find in (
        (node.inputs, newer.inputs, newer.input),
        (node.outputs, newer.outputs, newer.output),
    ):
        for index, value in enumerate(values):
            formal = find(index)
            if value is None or not (value.name or value.uses()):
                continue
            if formal is None:
                return f"the operand {index} does not exist since opset {newer.since}"
            text = "" if value.type is None else type_texts.type_text(value)
            if formal.types and text and text not in formal.types:
                return f"{text} is not allowed for `{formal.name}` since opset {newer.since}"
        for index, formal in enumerate(formals):
            if not (formal.optional or formal.variadic) and (index >= len(values) or values[index] is None):
                return f"`{formal.name}` is required since opset {newer.since}"
    return ""


def _write_defaults(node: ir.Node, older: schema.Schema, newer: schema.Schema) -> str:
    """Writes defaults of the older form that the newer form changed."""
    for name, default in older.defaults.items():
        after = newer.defaults.get(name)
        if name in node.attributes or name not in newer.attributes or default is None:
            continue
        if after is None or after.value != default.value:
            node.attributes[name] = default
    return ""


def _import(copy: ir.Model, target: int) -> None:
    """Sets the opset of the model, its graphs and its functions."""
    owners: list[ir.Model | ir.Graph | ir.Function] = [copy, *copy.functions.values(), *walk.graphs(copy)]
    for owner in owners:
        if owner is copy or any(domain in owner.opset_imports for domain in _ONNX):
            owner.opset_imports.pop("ai.onnx", None)
            owner.opset_imports[""] = target
    for function in copy.functions.values():
        for node in walk.nodes(function):
            node.version = None


def _version(imports: Mapping[str, int], default: int) -> int:
    return imports.get("", imports.get("ai.onnx", default))


def _unchanged(model: ir.Model, target: int) -> set[ir.OperatorIdentifier]:
    """Returns the functions whose operators, also in the functions that they call, mean the same in opset `target`."""
    own = _version(model.opset_imports, 0)
    kept = set(model.functions)
    while True:
        gone = {
            name
            for name in kept
            if not all(
                is_unchanged(node.op_type, _version(function.opset_imports, own), target)
                if node.domain in _ONNX
                else node.op_identifier() not in model.functions or node.op_identifier() in kept
                for function in (model.functions[name],)
                for node in walk.nodes(function)
            )
        }
        if not gone:
            return kept
        kept -= gone


@cache
def is_unchanged(op_type: str, version: int, target: int) -> bool:
    """Whether the operator is the same in both opsets, or only takes more dtypes in the newer."""
    old, new = schema.find(op_type, "", version), schema.find(op_type, "", target)
    if old is None or new is None or new.deprecated:
        return False
    if old.since == new.since:
        return True
    return (
        version < target
        and old.attributes == new.attributes
        and old.required == new.required
        and _values_of(old) == _values_of(new)
        and _takes(old.inputs, new.inputs)
        and _takes(old.outputs, new.outputs)
    )


def _values_of(found: schema.Schema) -> dict[str, object]:
    return {
        name: None if default is None else attribute_keys.exact(default) for name, default in found.defaults.items()
    }


def _takes(old: tuple[schema.Parameter, ...], new: tuple[schema.Parameter, ...]) -> bool:
    return len(old) == len(new) and all(
        (a.optional, a.variadic, a.least, a.mixed, a.type) == (b.optional, b.variadic, b.least, b.mixed, b.type)
        and a.types <= b.types
        for a, b in zip(old, new, strict=True)
    )
