"""Answers why a rule, a step or a pass did or did not change a node."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.edits import Entry, Simplification
from onnxsmith.base.report.parts.explanations import Answer
from onnxsmith.base.words import pasted
from onnxsmith.graph.passes.base import Pass
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.structure import tensor_paths, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.optimizer import branches, folding, pipeline, rule_selection, signature_changes
from onnxsmith.optimizer.fold_plan import SLACK, FoldPlan
from onnxsmith.optimizer.rule_selection import STEPS
from onnxsmith.optimizer.rules.base import Match, NoMatch, Rule


def why(question: str, before: ir.Model, after: ir.Model, part: Simplification) -> Answer:
    """Answers the question `RULE@NODE`. RULE is a rule, a step such as `fold/constant`, or a pass as the report names
    it. The node is in the original or in the simplified model, and is named by its own name or by the name of one of
    its outputs.

    Raises:
        OnnxsmithError: `simplify/unknown-rule`; `simplify/unknown-node`.
    """
    id_, _, name = question.partition("@")
    rules = rooms.members("onnxsmith.optimizer.rules", Rule)
    known = [*rules, *step_names()]
    if id_ not in known:
        raise rule_selection.unknown(id_, known)
    old, new = _found(before, name), _found(after, name)
    if old is None and new is None:
        raise problem(
            "simplify/unknown-node",
            f"no node and no output of a node is called {name!r}",
            fix=_named(id_, name, before),
        )
    labels = {walk.node_label(node) for node in (old, new) if node is not None} | {name, f"-> {name}"}
    here = [entry for entry in part.fired if entry.where.partition(" = ")[0] in labels]
    mine = next((entry for entry in here if entry.rule == id_), None)
    if mine is not None:
        return Answer(id_, name, True, f"rewrite {mine.id}: {_change(mine)}")
    culprit = next((entry for entry in part.switched_off if entry.rule == id_ and entry.where in labels), None)
    if culprit is not None:
        return Answer(id_, name, False, f"the rewrite was switched off: {culprit.why_not}")
    refused = next((entry for entry in part.refused if entry.rule == id_ and entry.where in labels), None)
    if refused is not None:
        return Answer(id_, name, False, refused.why_not)
    if new is None:
        others = ", ".join(dict.fromkeys(entry.rule for entry in here)) or "a rewrite around it"
        return Answer(id_, name, False, f"the node is not in the simplified model: {others} removed it")
    return Answer(id_, name, False, _asked(id_, rules.get(id_), after, name))


def _change(entry: Entry) -> str:
    """Returns the removed and the new operators of a rewrite, or the place that a pass changed, which describes the
    change."""
    if not entry.gone and not entry.made:
        return entry.where
    return f"{', '.join(entry.gone)} → {', '.join(entry.made)}"


def _asked(id_: str, rule: Rule | None, model: ir.Model, name: str) -> str:
    """Asks a rule about the node in the simplified model; without a rule, the step with this id."""
    copy = cloned(model)
    facts.spread_opsets(copy)
    inference = Inference(copy)
    node = _found(copy, name)
    assert node is not None
    if rule is None:
        return why_step_refused(id_, node, copy)
    if node.op_type not in rule.anchor or node.domain:
        return f"the rule starts at {', '.join(rule.anchor)}; this node is {node.op_type}"
    with inference.assumed():
        match = rule.match(node)
    if isinstance(match, NoMatch):
        reason = signature_changes.told(match.reason, node)
        return f"{reason} ({match.where})" if match.where else reason
    if isinstance(match, Match):
        ways = ["--only, --skip or --exactness excluded it"]
        ways += [f"it runs for the target {rule.target} only"] if rule.target else []
        ways += ["it runs with --contrib only"] if rule.domain else []
        return f"the rule would fire, but {', or '.join(ways)}"
    around = [value.producer() for value in node.inputs if value is not None]
    read = ", ".join(maker.op_type for maker in around if maker is not None) or "no other node"
    pattern = (
        f"the rule's pattern does not match: {node.op_type} reads from {read}; `onnxsmith explain` shows the pattern"
    )
    return f"{pattern}{signature_changes.replaceable(node)}"


def _named(id_: str, name: str, model: ir.Model) -> str:
    """Returns questions about the nodes with the most similar names."""
    labels = list(dict.fromkeys(walk.node_label(node).removeprefix("-> ") for node in walk.all_nodes(model)))
    near = (tensor_paths.near(name, labels) if name else []) or labels[:_SHOWN]
    listed = "`onnxsmith inspect MODEL --nodes` lists the nodes"
    return f"write {' or '.join(pasted(f'{id_}@{one}') for one in near)}; {listed}" if near else listed


_SHOWN = 3
"""Limits the nodes that an error offers where no name is similar. A choice."""


def _found(model: ir.Model, name: str) -> ir.Node | None:
    for node in walk.all_nodes(model) if name else ():
        if node.name == name or any(value.name == name for value in node.outputs):
            return node
    return None


# Explains why a step other than a rule (folding, branches, sharing) left a node as it is.

_SHARES = {
    "share/initializers": "no initializer that it reads is equal to an earlier one",
    "share/nodes": "no earlier node of its graph has the same operator, attributes and inputs",
    "share/sizes": "its result is not provably the sizes of an earlier tensor",
}
_LEFT_OUT = "the step would change the node, but --only or --skip excluded it"


def step_names() -> tuple[str, ...]:
    """Returns the names in a report that are not rules: ids of steps, and passes without an id."""
    return (*STEPS, *(pipeline.tidying(one) for one in _passes()))


def why_step_refused(id_: str, node: ir.Node, model: ir.Model) -> str:
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
