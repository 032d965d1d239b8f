"""Predicts from a profile, without running the model, which of its nodes a target accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.targets.profiles import conditions
from onnxsmith.targets.profiles.condition_result import Finding, Outlook, refused, unknown
from onnxsmith.targets.profiles.node_facts import Constants, Subject
from onnxsmith.targets.profiles.profile_format import Operators, Profile

_ORDER = list(Outlook)


@dataclass(frozen=True)
class Foreseen:
    """Holds the prediction of a profile for a node of the model; `node` is None for the model as a whole.

    `reason` is the first condition that the node does not meet, else the first condition that cannot be judged, else
    the note of the operator's entry. `source` is a link.
    """

    node: ir.Node | None
    outlook: Outlook
    reason: str
    source: str


def foresee(model: ir.Model, profile: Profile, shaped: ir.Model | None = None) -> list[Foreseen]:
    """Returns the predictions. The first prediction is for the model as a whole, if the model does not fit. Then
    follows one prediction for each node, in the order of the graph. Nodes in branches, loop bodies and local functions
    are included, `Constant` nodes are not.

    A node fits if its operator is listed and meets every condition. An unknown dtype, rank or value makes a node
    unknown if the profile restricts it. A node's prediction ignores the prediction for the whole model: a node can fit
    although the opset is refused. `worst` combines the predictions.

    `shaped` is a copy of the model with inferred shapes, for callers that ask several profiles; by default the copy is
    made here.
    """
    if shaped is None:
        shaped, _ = inferred(model)
    judge = _Judge(shaped, profile)
    foreseen = [_entry(None, finding, profile) for finding in _whole(model, profile)]
    calls: dict[int, ir.OperatorIdentifier] = {}
    for node, copy, imports in zip(walk.all_nodes(model), walk.all_nodes(shaped), _imports(model), strict=True):
        if node.op_type == "Constant" and node.domain in ("", "ai.onnx"):
            continue
        if node.op_identifier() in model.functions:
            calls[len(foreseen)] = node.op_identifier()
            foreseen.append(Foreseen(node, Outlook.UNKNOWN, "", profile.source))
        else:
            foreseen.append(judge.entry(node, Subject(copy, imports, judge.constants)))
    _judge_calls(model, profile, foreseen, calls)
    return foreseen


def worst(entries: Iterable[Foreseen]) -> Outlook:
    """Returns the worst outlook: refused before unknown before fits. A model without nodes fits."""
    return max((entry.outlook for entry in entries), key=_ORDER.index, default=Outlook.FITS)


class _Judge:
    def __init__(self, shaped: ir.Model, profile: Profile) -> None:
        self.profile = profile
        self.listed = profile.listed
        self.constants = Constants(shaped)

    def entry(self, node: ir.Node, subject: Subject) -> Foreseen:
        entry = self.listed.get(subject.name)
        doubt = None
        for finding in self._findings(entry, subject):
            if finding.outlook is Outlook.REFUSED:
                return _entry(node, finding, self.profile)
            doubt = doubt or finding
        if doubt is not None:
            return _entry(node, doubt, self.profile)
        note = entry.note if entry is not None else ""
        return _entry(node, Finding(Outlook.FITS, note, entry.source if entry is not None else ""), self.profile)

    def _findings(self, entry: Operators | None, subject: Subject) -> Iterator[Finding]:
        profile = self.profile
        if profile.domains is not None and subject.domain and subject.domain not in profile.domains:
            yield refused(f"operators of the domain {subject.domain} are not supported")
        if profile.subgraphs is False and walk.has_subgraphs(subject.node):
            yield refused("branches and loop bodies are not supported")
        if subject.name in profile.refused:
            yield refused(f"{subject.name} is not supported")
        elif entry is None:
            text = f"{subject.name} is not in the table"
            yield refused(text) if profile.unlisted == "refused" else unknown(text)
        if entry is None:
            return
        for one in conditions.of_operator(entry, subject, profile):
            found = one.outlook if entry.certain else Outlook.UNKNOWN
            yield Finding(found, one.reason, one.source or entry.source)
        yield from conditions.of_every_node(profile, entry, subject)
        for rule in profile.rules:
            finding = rule.judge(subject) if rule.applies(subject.name) else None
            if finding is not None:
                yield finding


def _entry(node: ir.Node | None, finding: Finding, profile: Profile) -> Foreseen:
    return Foreseen(node, finding.outlook, finding.reason, finding.source or profile.source)


def _imports(model: ir.Model) -> Iterator[dict[str, int]]:
    """Yields the opset imports that hold for each node, in the order of `walk.all_nodes`."""
    roots: list[ir.Graph | ir.Function] = [model.graph, *model.functions.values()]
    for root in roots:
        imports = dict(model.opset_imports if root is model.graph else root.opset_imports)
        for _ in walk.nodes(root):
            yield imports


def _whole(model: ir.Model, profile: Profile) -> Iterator[Finding]:
    """Yields the profile's findings about the model as a whole."""
    if profile.max_ir_version is not None and model.ir_version > profile.max_ir_version:
        yield refused(f"the IR version is {model.ir_version}; the target accepts at most {profile.max_ir_version}")
    roots = [("the model", model.opset_imports)]
    roots += [(f"the function {one.name}", one.opset_imports) for one in model.functions.values()]
    for where, imports in roots if profile.opset is not None else ():
        opset = imports.get("", imports.get("ai.onnx"))
        if opset is not None and profile.opset is not None and not profile.opset.allows(opset):
            yield refused(f"{where} has opset {opset}; the target accepts {profile.opset}")
    if profile.max_weight_bytes is not None:
        size = _weight_bytes(model)
        if size > profile.max_weight_bytes:
            yield refused(f"the weights have {size:,} bytes; the target accepts at most {profile.max_weight_bytes:,}")


_BYTES = {"value_float": 4, "value_floats": 4, "value_int": 8, "value_ints": 8}
"""Maps the attributes of Constant that hold Python numbers to the bytes of an element: float32 and int64
(Operators.md)."""


def _weight_bytes(model: ir.Model) -> int:
    held = {id(tensor): tensor for tensor in walk.tensors(model)}
    size = sum(tensor.nbytes for tensor in held.values())
    for node in walk.all_nodes(model):
        if node.op_type == "Constant":
            given = [
                (one, _BYTES[name]) for name, one in node.attributes.items() if name in _BYTES and not one.is_ref()
            ]
            size += sum(bytes_ * (len(one.value) if one.name.endswith("s") else 1) for one, bytes_ in given)
    return size


def _judge_calls(
    model: ir.Model, profile: Profile, foreseen: list[Foreseen], calls: dict[int, ir.OperatorIdentifier]
) -> None:
    """Gives each call of a local function the worst outlook of the nodes in its body."""
    owner = {id(node): key for key, function in model.functions.items() for node in walk.nodes(function)}
    bodies: dict[ir.OperatorIdentifier, list[Outlook]] = {key: [] for key in model.functions}
    inner: dict[ir.OperatorIdentifier, list[ir.OperatorIdentifier]] = {key: [] for key in model.functions}
    for index, entry in enumerate(foreseen):
        home = owner.get(id(entry.node))
        if home is not None and index in calls:
            inner[home].append(calls[index])
        elif home is not None:
            bodies[home].append(entry.outlook)

    found: dict[ir.OperatorIdentifier, Outlook] = {}

    def outlook(key: ir.OperatorIdentifier) -> Outlook:
        if key not in found:
            found[key] = Outlook.FITS  # ends a recursion, which the specification forbids
            found[key] = max([*bodies[key], *map(outlook, inner[key])], key=_ORDER.index, default=Outlook.FITS)
        return found[key]

    for index, key in calls.items():
        name = f"the local function {key[1]}"
        if profile.functions is False:
            finding = refused("local functions are not supported; `onnxsmith inline` replaces them")
        elif profile.functions is None:
            finding = unknown("the table does not say whether local functions are supported")
        else:
            finding = Finding(outlook(key), f"calls {name}, whose nodes are judged one by one")
        foreseen[index] = _entry(foreseen[index].node, finding, profile)
