"""Explains why a step other than a rule (folding, branches, sharing) left a node as it is."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.passes.base import Pass
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk
from onnxsmith.optimizer import branches, folding, pipeline, signature_changes
from onnxsmith.optimizer.fold_plan import SLACK, FoldPlan
from onnxsmith.optimizer.rule_selection import STEPS

_SHARES = {
    "share/initializers": "no initializer that it reads is equal to an earlier one",
    "share/nodes": "no earlier node of its graph has the same operator, attributes and inputs",
    "share/sizes": "its result is not provably the sizes of an earlier tensor",
}
_LEFT_OUT = "the step would change the node, but --only or --skip left it out"


def known() -> tuple[str, ...]:
    """Returns the names in a report that are not rules: ids of steps, and passes without an id."""
    return (*STEPS, *(pipeline.tidying(one) for one in _passes()))


def asked(id_: str, node: ir.Node, model: ir.Model) -> str:
    """Returns why the step leaves the node of a simplified model as it is."""
    if id_ == folding.RULE:
        return _not_folded(node, model)
    if id_ == branches.RULE:
        return _not_flattened(node)
    if id_ in _SHARES:
        return _SHARES[id_]
    title = next(one.title for one in _passes() if pipeline.tidying(one) == id_)
    return f"the pass ({title}) always runs, and found nothing to do here"


def _passes() -> list[Pass]:
    return [one for name, one in (*pipeline.BEFORE, *pipeline.AFTER) if not name]


def _not_folded(node: ir.Node, model: ir.Model) -> str:
    for value in node.inputs:
        if value is not None and not facts.is_constant(value) and value.producer() is None:
            why = signature_changes.replaceable(node) if value.is_initializer() else ""
            return f"its input {value.name} is not a constant{why}"
    if not walk.has_own_initializers(model):
        return f"folding needs IR version {walk.FIRST_WITH_CONSTANTS}, and the model has {model.ir_version}"
    refused: dict[ir.Node, str] = {}
    plan = FoldPlan(model, set(), refused.__setitem__, 0, SLACK)
    if node in plan.nodes:
        return _LEFT_OUT
    if node in refused:
        return refused[node]
    open_ = next((one for one in node.inputs if one is not None and not facts.is_constant(one)), None)
    maker = open_.producer() if open_ is not None else None
    if open_ is not None and maker is not None:
        return f"its input {open_.name} is not a constant: {maker.op_type} computes it"
    return f"folding leaves {node.op_type} alone here; the class `Folding` lists what is not folded"


def _not_flattened(node: ir.Node) -> str:
    if node.op_type != "If" or node.domain:
        return f"the step starts at If; this node is {node.op_type}"
    condition = node.inputs[0] if node.inputs else None
    if condition is None or not facts.is_constant(condition):
        return f"its condition {condition.name if condition is not None else ''} is not a constant"
    return _LEFT_OUT
