"""Removes the nodes that no installed runtime runs from two models, so that the parts around them can be compared.

Both models have the same unsupported node. In the cut models, the node's results become inputs and its operands
outputs. If the node is in a function, the function is inlined. If the unsupported node is in a branch or loop body, the
node of the main graph that holds the body is cut, and the values that the body reads from outside are compared too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.graph.shapes import facts, reader_types
from onnxsmith.graph.shapes.reader_types import read_off
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import captures, walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.runtimes import base as runtimes
from onnxsmith.verification.runtime_choice import LACKS, RuntimeChoice, in_order

_KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
_PREFIX = "foreign"
_MOST_KINDS = 16
"""Limits the kinds of nodes without a kernel that are cut one by one. A choice: each kind needs a prepared session."""

Key = tuple[str, ...]


@dataclass(frozen=True)
class Cut:
    """Holds two models that run on `runtime`, and a note on the nodes that were cut out."""

    pair: tuple[ir.Model, ir.Model]
    runtime: str
    note: str

    def choice(self, refusal: Problem) -> RuntimeChoice:
        """Makes the headline's clause; `refusal` is why the whole model could not be run."""
        return RuntimeChoice(f"{self.runtime}, in parts", (refusal,))


def foreign_nodes(model: ir.Model) -> list[ir.Node]:
    """Returns the nodes of the main graph that belong to a domain unknown to the installed runtimes, or that contain
    such a node."""
    functions = {(domain, name) for domain, name, _ in model.functions}
    return [node for node in model.graph if any(_is_foreign(one, functions) for one in (node, *walk.inside(node)))]


def holds_foreign(model: ir.Model) -> bool:
    """Whether the model has a node, at any depth, of a domain unknown to the installed runtimes."""
    functions = {(domain, name) for domain, name, _ in model.functions}
    return any(_is_foreign(node, functions) for node in walk.all_nodes(model))


def foreign_operators(model: ir.Model) -> list[str]:
    """Returns the operators, at any depth, of domains unknown to the installed runtimes: `acme::Gate`."""
    functions = {(domain, name) for domain, name, _ in model.functions}
    return sorted({walk.op_name(node) for node in walk.all_nodes(model) if _is_foreign(node, functions)})


def around(reference: ir.Model, candidate: ir.Model, runtime: str | None = None) -> Cut | None:
    """Cuts out of both models the nodes that `runtime` does not run. Without `runtime`, cuts out the nodes that no
    installed runtime runs. Returns None if these nodes cannot be identified or paired."""
    ours, theirs = _inlined(reference), _inlined(candidate)
    kinds: set[Key] = set()
    # Nodes of unknown domains are cut first: with them gone, an installed runtime may run the rest.
    for name in (runtime,) if runtime is not None else in_order():
        made = _around(ours, theirs, kinds)
        if made is not None and _lack(made[0], name) is None:
            return Cut(made[:2], name, made[2])
    # If none does, each kind of node without a kernel is cut until the runtime takes the model.
    name = runtime or in_order()[0]
    for _ in range(_MOST_KINDS):
        made = _around(ours, theirs, kinds)
        lack = _lack(made[0] if made is not None else ours, name)
        if lack is None:
            return Cut(made[:2], name, made[2]) if made is not None else None
        found = _kind_of(lack, ours)
        if found is None or found in kinds:  # cut already, and still refused: another round would not help
            return None
        kinds.add(found)
    return None


def _inlined(model: ir.Model) -> ir.Model:
    """Returns the model, with functions inlined if one holds a foreign node."""
    functions = {(domain, name) for domain, name, _ in model.functions}
    inside = (node for function in model.functions.values() for node in walk.nodes(function))
    plain = inlined(model)[0] if any(_is_foreign(node, functions) for node in inside) else model
    return inferred(plain)[0]


def _is_foreign(node: ir.Node, functions: Iterable[tuple[str, str]]) -> bool:
    return node.domain not in _KNOWN_DOMAINS and (node.domain, node.op_type) not in functions


def _lack(model: ir.Model, runtime: str) -> Problem | None:
    """Returns the problem of a capability that the runtime lacks for the model, or None. Raises any other refusal."""
    try:
        with runtimes.get(runtime).prepare(model):
            return None
    except OnnxsmithError as error:
        if error.problem.id not in LACKS:
            raise
        return error.problem


def _kind_of(lack: Problem, model: ir.Model) -> Key | None:
    """Returns the operator and dtypes of the node that a runtime has no kernel for."""
    operator = re.search(r"no kernel for (\S+)", lack.what)
    name = re.search(r"node '(.+)'", lack.where)
    for node in walk.nodes(model.graph):
        if operator and node.op_type == operator[1].rpartition(":")[2] and (name is None or node.name == name[1]):
            return _kind(node)
    return None


def _kind(node: ir.Node) -> Key:
    dtypes = (str(value.dtype) if value is not None else "" for value in (*node.inputs, *node.outputs))
    return (node.domain, node.op_type, *dtypes)


def _around(reference: ir.Model, candidate: ir.Model, kinds: set[Key]) -> tuple[ir.Model, ir.Model, str] | None:
    """Returns copies of both models without their foreign nodes and nodes of `kinds`, and a note on these nodes. Each
    foreign node of the candidate has a partner in `reference`. A foreign node of the reference without a partner was
    dead code."""
    shaped, copy = cloned(reference), cloned(candidate)
    ours, theirs = (_keyed(_chosen(model, kinds)) for model in (shaped, copy))
    if not ours or not theirs.keys() <= ours.keys():
        return None
    left_out = Counter(node.op_type for node in ours.values())
    for index, (key, node) in enumerate(ours.items()):
        other = theirs.get(key)
        if other is None:
            continue
        if len(node.inputs) != len(other.inputs) or len(node.outputs) != len(other.outputs):
            return None
        prefix = f"{_PREFIX}{index}"
        for value in node.outputs:
            read_off(value, shaped.opset_imports)
        ports = [_port(node, value, f"{prefix}.result{k}") for k, value in enumerate(node.outputs)]
        _compare(shaped.graph, copy.graph, (node, other), prefix)
        _cut(shaped.graph, node, ports, prefix)
        _cut(copy.graph, other, [_like(port) for port in ports], prefix)
    names = ", ".join(f"{count} {op_type}" for op_type, count in left_out.items())
    return (
        shaped,
        copy,
        (f"no runtime on this machine runs some nodes, so only the parts around them were verified; left out: {names}"),
    )


def _chosen(model: ir.Model, kinds: set[Key]) -> list[ir.Node]:
    foreign = set(foreign_nodes(model))
    return [
        node
        for node in model.graph
        if node in foreign or any(_kind(one) in kinds for one in (node, *walk.inside(node)))
    ]


def _keyed(nodes: Sequence[ir.Node]) -> dict[Key, ir.Node]:
    """Returns the nodes by operator and name if the name is unique, else by operator and position among the nodes of
    this operator."""
    names = Counter(node.name for node in nodes)
    places: Counter[tuple[str, str]] = Counter()
    keyed: dict[Key, ir.Node] = {}
    for node in nodes:
        kind = (node.domain, node.op_type)
        places[kind] += 1
        own = node.name if node.name and names[node.name] == 1 else f"#{places[kind]}"
        keyed[*kind, own] = node
    return keyed


def _port(node: ir.Node, value: ir.Value, name: str) -> ir.Value:
    """Makes an input in the result's place. If its type is unknown, copies the type of the node's first typed operand;
    weights of a reader may fix another number of channels."""
    like = next((v for v in (value, *node.inputs) if v is not None and v.dtype is not None), None)
    shaped = next((v for v in (value, *node.inputs) if v is not None and v.shape is not None), None)
    dtype = like.dtype if like is not None and like.dtype is not None else ir.DataType.FLOAT
    shape = shaped.shape if shaped is not None else None
    size = reader_types.channels(value)
    if shape is not None and value.shape is None and size is not None and len(shape) > 1:
        shape = ir.Shape([shape[0], size, *shape[2:]])
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=shape)


def _like(port: ir.Value) -> ir.Value:
    return ir.Value(name=port.name, type=port.type, shape=port.shape)


def _compare(one: ir.Graph, other: ir.Graph, pair: tuple[ir.Node, ir.Node], prefix: str) -> None:
    """Makes the operands of the two nodes outputs. Constants and attributes are compared here: if they differ, both
    graphs get an output named `constants`, with different values."""
    same = _attributes(pair[0]) == _attributes(pair[1])
    reads = [(a, b) for a, b in zip(pair[0].inputs, pair[1].inputs, strict=True)]
    outside, others = _captured(pair[0]), _captured(pair[1])
    reads += [(outside[name], others[name]) for name in outside if name in others]
    for index, (a, b) in enumerate(reads):
        if a is None or b is None:
            same = same and a is b
            continue
        known, wanted = facts.constant(a), facts.constant(b)
        if known is not None and wanted is not None:
            same = same and known.dtype == wanted.dtype and np.array_equal(_bits(known), _bits(wanted))
            continue
        name = f"{prefix}.operand{index}"
        one.outputs.append(_copied(one, pair[0], a, name))
        other.outputs.append(_copied(other, pair[1], b, name))
    if not same:
        for graph, node, value in ((one, pair[0], 0), (other, pair[1], 1)):
            constant = ir.node("Constant", [], {"value": ir.tensor(np.array([value], np.int64))})
            constant.outputs[0].name = f"{prefix}.constants"
            constant.outputs[0].type, constant.outputs[0].shape = ir.TensorType(ir.DataType.INT64), ir.Shape([1])
            graph.insert_before(node, constant)
            graph.outputs.append(constant.outputs[0])


def _attributes(node: ir.Node) -> dict[str, str]:
    plain = {name: one for name, one in node.attributes.items() if not walk.holds_subgraphs(one)}
    return {
        name: repr(one.as_tensor().numpy().tolist() if one.type is ir.AttributeType.TENSOR else one.value)
        for name, one in plain.items()
    }


def _bits(array: np.ndarray) -> np.ndarray:
    return array if array.dtype == object else np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _captured(node: ir.Node) -> dict[str, ir.Value]:
    """Returns the values that the node's bodies read from outside, by name."""
    return {value.name or "": value for value in captures.captured(node)}


def _cut(graph: ir.Graph, node: ir.Node, ports: Sequence[ir.Value], prefix: str) -> None:
    for port, value in zip(ports, node.outputs, strict=True):
        if not value.uses() and not value.is_graph_output():
            continue
        graph.inputs.append(port)
        if value.is_graph_output():  # the output keeps its name, although a graph input now gives its value
            name = value.name
            value.name = f"{prefix}.{name}"
            graph.outputs[list(graph.outputs).index(value)] = _copied(graph, node, port, name or "")
        value.replace_all_uses_with(port)
    captures.release(node)
    graph.remove(node, safe=True)


def _copied(graph: ir.Graph, node: ir.Node, value: ir.Value, name: str) -> ir.Value:
    """Adds an Identity of the value under a new name, because the value may already be a graph input or output."""
    identity = ir.node("Identity", [value])
    result = identity.outputs[0]
    result.name, result.type, result.shape = name, value.type, value.shape
    graph.insert_before(node, identity)
    return result
