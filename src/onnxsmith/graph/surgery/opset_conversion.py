"""Converts a model to another opset, or raises if that is impossible."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.base.problem import Problem, problem
from onnxsmith.base.words import first_few
from onnxsmith.graph.structure import versions, walk
from onnxsmith.graph.structure.opset_range import refuse_unknown

_SHOWN = 3
"""Limits the nodes that a refusal names. A choice."""


def of(model: ir.Model) -> int:
    """Returns the version of ONNX's own operator set that the model imports; 0 without an import."""
    return model.opset_imports.get("", model.opset_imports.get("ai.onnx", 0))


def convert(model: ir.Model, target: int | None, *, asked_by: str = "") -> ir.Model:
    """Returns a copy of `model` at opset `target`; `model` itself if it has that opset already, or if `target` is None.
    Inlines local functions whose bodies cannot be converted; see `inlined_functions`. The copy has the IR version of
    the new opset, and no opset import that no node needs. `asked_by` is how the user asks for another opset, with
    `{opset}` in its place: `--opset {opset}`. A refusal names it with an opset that works.

    Raises: OnnxsmithError: `export/opset` if the version does not exist, or if the converters cannot convert an
        operator.
    """
    now = of(model)
    if target is None or now == target:
        return model
    refuse_unknown(target, f"without another opset the model keeps {now}")
    made = (_lower if target < now else _raise)(model, now, target, asked_by)
    versions.drop_unused_imports(made)
    made.ir_version = versions.least_ir(made)
    return made


def inlined_functions(before: ir.Model, after: ir.Model) -> list[str]:
    """Returns a note if a change to a model inlined local functions, else an empty list."""
    gone = [f"{domain}::{name}" for domain, name, _ in before.functions if (domain, name, _) not in after.functions]
    return [f"local functions were inlined: {', '.join(gone)}"] if gone else []


def rewritten(before: ir.Model, after: ir.Model) -> list[str]:
    """Returns the operator and the label of each node of `before` that changed with the opset of `after`: nodes that
    the conversion wrote in another form, and then nodes whose operator has another form in that opset."""
    from onnxsmith.graph.surgery.raising import is_unchanged

    old, new = sorted((of(before), of(after)))
    if old == new:
        return []
    made = {value.name: node for node in walk.all_nodes(after) for value in node.outputs if value.name}
    written, others = [], []
    for node in walk.all_nodes(before):
        label = f"{node.op_type} {walk.node_label(node)}"
        found = next((made[value.name] for value in node.outputs if value.name in made), None)
        if found is not None and _form(node) != _form(found):
            written.append(label)
        elif node.domain in ("", "ai.onnx") and not is_unchanged(node.op_type, old, new):
            others.append(label)
    return written + others


def _form(node: ir.Node) -> tuple[object, ...]:
    plain = (ir.AttributeType.TENSOR, ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS)
    values = {name: None if one.type in plain else one.value for name, one in node.attributes.items()}
    return node.domain, node.op_type, values, [None if value is None else value.name for value in node.inputs]


def with_rewritten(found: Problem, names: Sequence[str]) -> Problem:
    """Returns the problem. If an output differs after a conversion to another opset, its reason names the nodes that
    changed with the opset, as `rewritten` gives them."""
    if found.id != "verify/different" or not names:
        return found
    why = f"{found.why}. Changed with the opset: {first_few(names, _SHOWN)}"
    return dataclasses.replace(found, why=why)


def _lower(model: ir.Model, now: int, target: int, asked_by: str) -> ir.Model:
    from onnxsmith.graph.surgery.lowering import lowered

    found = lowered(model, target)
    if found.stuck:
        first = found.stuck[:_SHOWN]
        raise problem(
            "export/opset",
            f"the model is at opset {now} and could not be converted to {target}",
            where=", ".join(f"{one.node} ({one.source})" if one.source else one.node for one in first),
            why=first_few([f"{one.node}: {one.reason}" for one in found.stuck], _SHOWN, "; "),
            fix=_nearest(model, now, target, asked_by),
        )
    return found.model


def _nearest(model: ir.Model, now: int, target: int, asked_by: str) -> str:
    """Says which opset to choose: the lowest above the requested one to which the model can be converted, found by
    trying each."""
    from onnxsmith.graph.surgery.lowering import lowered

    found = next((one for one in range(target + 1, now) if not lowered(model, one).stuck), now)
    has = " (the model has this opset now)" if found == now else ""
    said = f"choose opset {found}, the lowest in which the model can be written{has}"
    return f"{said}: {asked_by.format(opset=found)}" if asked_by else said


def _raise(model: ir.Model, now: int, target: int, asked_by: str) -> ir.Model:
    from onnxsmith.graph.surgery.raising import raised

    copy, errors = raised(model, target)
    if errors:
        raise problem(
            "export/opset",
            f"the model is at opset {now} and could not be converted to {target}",
            why="; ".join(errors),
            fix=_highest(model, now, target, asked_by),
        )
    return copy


def _highest(model: ir.Model, now: int, target: int, asked_by: str) -> str:
    """Says which opset to choose: the highest below the requested one to which the model can be converted, found by
    trying each."""
    from onnxsmith.graph.surgery.raising import raised

    found = next((one for one in range(target - 1, now, -1) if not raised(model, one)[1]), now)
    has = " (the model has this opset now)" if found == now else ""
    said = f"choose opset {found}, the highest in which the model can be written{has}"
    return f"{said}: {asked_by.format(opset=found)}" if asked_by else said
