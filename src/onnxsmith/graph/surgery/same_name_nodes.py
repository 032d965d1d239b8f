"""Finds nodes that have the same name in two models but differ, and exchanges them.

Two nodes are twins if their first outputs have the same name. A twin that is put into the other model reads that
model's tensors of the same names; its constants come along."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.structure import attribute_keys, walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned

Same = Callable[[ir.TensorProtocol, ir.TensorProtocol], bool]


@dataclass(frozen=True)
class Pair:
    """Two nodes with the same name: `ours`, and its `twin` from the other model."""

    name: str
    ours: ir.Node
    twin: ir.Node

    @property
    def is_wired_alike(self) -> bool:
        """Whether both nodes read the same computed tensors, in the same order."""
        return self.reads == list(_computed(self.twin))

    @property
    def reads(self) -> list[str]:
        """Names of the computed tensors that `ours` reads, in order."""
        return list(_computed(self.ours))


@dataclass(frozen=True)
class Doubled:
    """A model with extra outputs: for each pair, the result of the node, the result of its twin, and the tensors that
    the node reads. `outputs` maps the pair's name to the names of the two results."""

    model: ir.Model
    outputs: Mapping[str, tuple[str, str]]


def pairs(model: ir.Model, other: ir.Model, same: Same) -> tuple[list[Pair], list[Pair]]:
    """Returns two lists of pairs of different nodes with the same name, in order: pairs whose twin can be put into
    `model`, and pairs whose twin, from `model`, can be put into `other`. `same` compares tensors. Leaves out Constant
    nodes, nodes with branches or bodies, nodes whose operator set has different versions in the two models, and nodes
    that read a tensor that the other model does not have."""
    theirs = {node.outputs[0].name: node for node in other.graph if node.outputs}
    held, others = _values(model), _values(other)
    here: list[Pair] = []
    there: list[Pair] = []
    for node in model.graph:
        twin = theirs.get(node.outputs[0].name) if node.outputs and node.outputs[0].name else None
        if twin is None or not _may_swap(node, twin, model, other) or _is_same(node, twin, same):
            continue
        name = node.outputs[0].name or ""
        if all(read in held for read in _computed(twin)):
            here.append(Pair(name, node, twin))
        elif all(read in others for read in _computed(node)):
            there.append(Pair(name, twin, node))
    return here, there


def inner_pairs(model: ir.Model, other: ir.Model, same: Same) -> list[Pair]:
    """Returns the pairs of different nodes with the same name in branches, bodies and local functions that read the
    same computed tensors. Leaves out names that several graphs of a model use."""
    ours, theirs = _inner(model), _inner(other)
    found = (Pair(name, node, theirs[name]) for name, node in ours.items() if name in theirs)
    return [
        pair
        for pair in found
        if len(pair.ours.outputs) == len(pair.twin.outputs)
        and _may_swap(pair.ours, pair.twin, model, other)
        and pair.is_wired_alike
        and not _is_same(pair.ours, pair.twin, same)
    ]


def swapped_inside(model: ir.Model, pair: Pair) -> ir.Model:
    """Returns a copy of `model` with the twin in place of a node of a branch, body or local function."""
    made = cloned(model)
    own = _inner(made)[pair.name]
    assert own.graph is not None
    names, computed = Names(made), [value for value in own.inputs if value is not None and const_tensor(value) is None]
    inputs: list[ir.Value | None] = []
    for value in pair.twin.inputs:
        tensor = const_tensor(value) if value is not None else None
        if value is None or tensor is None:
            inputs.append(None if value is None else computed.pop(0))
            continue
        constant = ir.node("Constant", [], {"value": ir.tensor(tensor.numpy(), dtype=tensor.dtype)})
        constant.outputs[0].name = names.free(f"{value.name}.twin")
        own.graph.insert_before(own, constant)
        inputs.append(constant.outputs[0])
    node = ir.Node(
        pair.twin.domain, pair.twin.op_type, inputs, list(pair.twin.attributes.values()),
        num_outputs=len(own.outputs), overload=pair.twin.overload, name=own.name,
    )  # fmt: skip
    own.graph.insert_before(own, node)
    for old, new in zip(own.outputs, node.outputs, strict=True):
        name, new.type, new.shape = old.name, old.type, old.shape
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        old.name, new.name = f"{name}.before", name
    own.graph.remove(own, safe=True)
    return made


def _inner(model: ir.Model) -> dict[str, ir.Node]:
    """Returns the nodes outside of the main graph by the name of their first output, without names that occur twice."""
    nodes = [node for node in walk.all_nodes(model) if node.graph is not model.graph and node.outputs]
    counts = Counter(node.outputs[0].name for node in nodes)
    return {node.outputs[0].name: node for node in nodes if node.outputs[0].name and counts[node.outputs[0].name] == 1}


def doubled(model: ir.Model, chosen: Sequence[Pair]) -> Doubled:
    """Returns a copy of `model` in which the twins of these pairs run beside the nodes."""
    made = cloned(model)
    graph, names, held = made.graph, Names(made), _values(made)
    given: dict[str, ir.Value] = {value.name: value for value in graph.outputs if value.name}
    outputs: dict[str, tuple[str, str]] = {}
    for pair in chosen:
        node = _put(pair.twin, made, held, names)
        graph.append(node)
        read = [name for name in dict.fromkeys(_computed(pair.ours)) if held[name] not in graph.inputs]
        for value in (held[pair.name], node.outputs[0], *(held[name] for name in read)):
            given.setdefault(value.name or "", value)
        outputs[pair.name] = (pair.name, node.outputs[0].name or "")
    graph.outputs.clear()
    graph.outputs.extend(given.values())
    return Doubled(made, outputs)


def swapped(model: ir.Model, pair: Pair) -> ir.Model | None:
    """Returns a copy of `model` with the twin in place of the node; None if that makes a cycle."""
    made = cloned(model)
    graph, names, held = made.graph, Names(made), _values(made)
    own = held[pair.name].producer()
    assert own is not None
    node = _put(pair.twin, made, held, names)
    graph.insert_before(own, node)
    for old, new in zip(own.outputs, node.outputs, strict=False):
        name, new.type = old.name, new.type or old.type
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        old.name, new.name = f"{name}.before", name
    try:
        graph.sort()
    except ValueError:
        return None
    return made


def alone(
    node: ir.Node, read: Mapping[str, tuple[ir.DataType, Sequence[int | str]]], opset_imports: Mapping[str, int]
) -> ir.Model:
    """Makes a model of one node; `read` has the dtypes and shapes of its inputs by name."""
    ports = {
        name: ir.Value(name=f"{name}.alone", type=ir.TensorType(dtype), shape=ir.Shape(list(sizes)))
        for name, (dtype, sizes) in read.items()
    }
    versions = dict(opset_imports)
    made = ir.Model(ir.Graph(list(ports.values()), [], nodes=[], opset_imports=versions, name="alone"), ir_version=10)
    copy = _put(node, made, ports, Names(made))
    made.graph.append(copy)
    copy.outputs[0].name = "given.alone"
    made.graph.outputs.append(copy.outputs[0])
    return made


def _put(node: ir.Node, model: ir.Model, held: Mapping[str, ir.Value], names: Names) -> ir.Node:
    """Makes a copy of the node for `model`. It reads the values in `held` by name, and copies of its own constants."""
    inputs: list[ir.Value | None] = []
    for value in node.inputs:
        tensor = const_tensor(value) if value is not None else None
        if value is None or tensor is None:
            inputs.append(None if value is None else held[value.name or ""])
            continue
        constant = ir.Value(
            name=names.free(f"{value.name}.twin"),
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape([size for size in tensor.shape if isinstance(size, int)]),
        )
        constant.const_value = ir.tensor(tensor.numpy(), dtype=tensor.dtype, name=constant.name)
        model.graph.register_initializer(constant)
        inputs.append(constant)
    made = ir.Node(
        node.domain, node.op_type, inputs, list(node.attributes.values()), num_outputs=len(node.outputs),
        overload=node.overload, name=names.free(f"{node.name or node.op_type}.twin"),
    )  # fmt: skip
    for new, old in zip(made.outputs, node.outputs, strict=True):
        new.name = names.free(f"{old.name}.twin") if old.name else ""
        new.type = old.type
    return made


def _values(model: ir.Model) -> dict[str, ir.Value]:
    """Returns the values that nodes of the main graph may read, by name."""
    graph = model.graph
    made = (value for node in graph for value in node.outputs)
    return {value.name: value for value in (*graph.inputs, *graph.initializers.values(), *made) if value.name}


def _computed(node: ir.Node) -> Iterator[str]:
    """Yields the names of the inputs that are not constants."""
    for value in node.inputs:
        if value is not None and const_tensor(value) is None:
            yield value.name or ""


def _may_swap(node: ir.Node, twin: ir.Node, model: ir.Model, other: ir.Model) -> bool:
    """Whether each of the two nodes could run in the model of the other."""
    both = (node, twin)
    if any(one.op_type == "Constant" for one in both):
        return False
    if any(model.opset_imports.get(one.domain) != other.opset_imports.get(one.domain) for one in both):
        return False
    return not any(True for one in both for _ in walk.subgraphs(one))


def _is_same(node: ir.Node, twin: ir.Node, same: Same) -> bool:
    if (node.domain, node.op_type, node.overload, len(node.inputs), len(node.outputs)) != (
        twin.domain, twin.op_type, twin.overload, len(twin.inputs), len(twin.outputs),
    ):  # fmt: skip
        return False
    if not all(_reads_same(a, b, same) for a, b in zip(node.inputs, twin.inputs, strict=True)):
        return False
    if node.attributes.keys() != twin.attributes.keys():
        return False
    return all(_says_same(node.attributes[name], twin.attributes[name], same) for name in node.attributes)


def _reads_same(a: ir.Value | None, b: ir.Value | None, same: Same) -> bool:
    if a is None or b is None:
        return a is b
    first, second = const_tensor(a), const_tensor(b)
    if first is None or second is None:
        return a.name == b.name
    return first is second or same(first, second)


def _says_same(a: ir.Attr, b: ir.Attr, same: Same) -> bool:
    """Whether two attributes are exactly equal; for tensors, whether the caller's function says so."""
    if a.type == b.type == ir.AttributeType.TENSOR and not a.is_ref() and not b.is_ref():
        return same(a.as_tensor(), b.as_tensor())
    return attribute_keys.exact(a) == attribute_keys.exact(b)
