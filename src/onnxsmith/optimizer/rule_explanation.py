"""Answers why a rule, a step or a pass did or did not change a node."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base import rooms
from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.explanations import Answer
from onnxsmith.base.report.parts.simplification import Entry, Simplification
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.shapes.inference import Inference
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.optimizer import rule_selection, signature_changes, step_explanation
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
    known = [*rules, *step_explanation.known()]
    if id_ not in known:
        raise rule_selection.unknown(id_, known)
    old, new = _found(before, name), _found(after, name)
    if old is None and new is None:
        raise problem(
            "simplify/unknown-node",
            f"no node and no output of a node is called {name!r}",
            fix="use --why RULE@NODE with a name that `onnxsmith inspect` shows",
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
        return step_explanation.asked(id_, node, copy)
    if node.op_type not in rule.anchor or node.domain:
        return f"the rule starts at {', '.join(rule.anchor)}; this node is {node.op_type}"
    with inference.assumed():
        match = rule.match(node)
    if isinstance(match, NoMatch):
        reason = signature_changes.told(match.reason, node)
        return f"{reason} ({match.where})" if match.where else reason
    if isinstance(match, Match):
        ways = ["--only, --skip or --exactness left it out"]
        ways += [f"it runs for the target {rule.target} only"] if rule.target else []
        ways += ["it runs with --contrib only"] if rule.domain else []
        return f"the rule would fire, but {', or '.join(ways)}"
    around = [value.producer() for value in node.inputs if value is not None]
    read = ", ".join(maker.op_type for maker in around if maker is not None) or "no other node"
    pattern = (
        f"the rule's pattern does not match: {node.op_type} reads from {read}; `onnxsmith explain` shows the pattern"
    )
    return f"{pattern}{signature_changes.replaceable(node)}"


def _found(model: ir.Model, name: str) -> ir.Node | None:
    for node in walk.all_nodes(model) if name else ():
        if node.name == name or any(value.name == name for value in node.outputs):
            return node
    return None
