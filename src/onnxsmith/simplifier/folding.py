"""Nodes whose inputs never change are run once, here, and their results become initializers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.model import facts, walk
from onnxsmith.model.fresh import Names
from onnxsmith.problem import OnnxsmithError
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Outputs
from onnxsmith.simplifier.journal import Journal

RULE = "fold/constant"
_SLACK = 1024
"""Bytes by which a fold may make the weights larger: what a node itself takes in the file, generously."""
_MOST_BYTES = 1 << 30
"""No value larger than this is computed, not even on the way to a small one."""
_TIME_LIMIT = 60.0
_MOST_RUNS = 64
_MOST_TURNS = 20
"""How often the ends of a group that grows are taken off before the group is given up, so that work stays linear."""

_NEVER = walk.RANDOM | {
    "Constant",
    "DequantizeLinear",  # its input is small on purpose
    "Dropout",
    "Identity",  # a rule removes it without copying anything
    "If",
    "Loop",
    "Scan",
}
_MAY_GROW = {"ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile", "Upsample"}
_INTEGERS: dict[ir.DataType, type[np.signedinteger[Any]]] = {ir.DataType.INT64: np.int64, ir.DataType.INT32: np.int32}


@dataclass
class Folding:
    """Folds the main graph; one object for all rounds of one model, because what was refused stays refused.

    Known integers (a size taken from a declared shape) become initializers without running anything. Other nodes
    whose inputs are constants are put into one model, chains included, which one process runs once with optimisation
    off. When that fails, crashes or takes longer than a minute, the batch is halved until the culprits are alone.

    Left alone: random operators, seeded or not; Dropout, normalisation in training; DequantizeLinear; nodes with
    subgraphs; other domains and calls of functions; strings, sequences and optionals; graph outputs; defaults that a
    caller may replace; results that would take more room than the constants they free, and 1 kB; results whose dtype
    is unknown, and those that do not come out with the dtype and shape that were inferred; models of IR version 3,
    whose initializers are all inputs. In subgraphs and functions nothing is folded yet.
    """

    journal: Journal
    runtime: str = ""
    _refused: set[ir.Node] = field(default_factory=set)
    _postponed: dict[ir.Node, str] = field(default_factory=dict)
    _runs: int = 0

    def run(self, model: ir.Model) -> bool:
        """Folds `model` in place; says whether anything was."""
        if model.ir_version is not None and model.ir_version < 4:
            return False
        names = Names(model)
        changed = self._known_integers(model.graph, names)
        self._postponed.clear()
        nodes = _Plan(model, self._refused, self._postponed.__setitem__).nodes
        if nodes:
            results = self._evaluated(model, nodes, {})
            changed |= self._accept(model.graph, nodes, results, names)
        return changed

    def finish(self) -> None:
        """Notes what the last round still refused: an earlier round may have refused what a later one folded."""
        for node, why in self._postponed.items():
            self.journal.refuse(RULE, walk.node_label(node), why)

    def _known_integers(self, graph: ir.Graph, names: Names) -> bool:
        changed = False
        for node in graph:
            if node.domain or node.op_type == "Constant":
                continue
            for value in node.outputs:
                tensor = _integers(value)
                if tensor is not None:
                    _replace(graph, value, tensor, names)
                    self.journal.fire(RULE, walk.node_label(node))
                    changed = True
        return changed

    def _refuse(self, node: ir.Node, why: str) -> None:
        self._refused.add(node)
        self.journal.refuse(RULE, walk.node_label(node), why)

    def _evaluated(
        self, model: ir.Model, nodes: Sequence[ir.Node], known: Mapping[ir.Value, ir.TensorProtocol]
    ) -> dict[ir.Value, ir.TensorProtocol]:
        """What `nodes` give to others, as far as it can be computed from constants and what is `known`."""
        able = _able(nodes, known)
        wanted = _wanted(able)
        if not wanted:
            return {}
        self._runs += 1
        if self._runs > _MOST_RUNS:
            for node in able:
                self._refuse(node, "too many operators failed before it; what is left was not tried")
            return {}
        try:
            outputs = _run(_batch(model, able, wanted, known), self.runtime or runtimes.default())
        except OnnxsmithError as error:
            if len(able) == 1:
                self._refuse(able[0], f"it cannot be computed here: {error.problem.what}")
                return {}
            middle = len(able) // 2
            first = self._evaluated(model, able[:middle], known)
            return first | self._evaluated(model, able[middle:], {**known, **first})
        return {value: _tensor(outputs[f"v{index}"], value) for index, value in enumerate(wanted)}

    def _accept(
        self,
        graph: ir.Graph,
        nodes: Sequence[ir.Node],
        results: Mapping[ir.Value, ir.TensorProtocol],
        names: Names,
    ) -> bool:
        changed = False
        for node in nodes:
            found = {value: results[value] for value in node.outputs if value in results}
            wrong = next((why for value, tensor in found.items() if (why := _mismatch(value, tensor))), "")
            if wrong:
                self._refuse(node, wrong)
                continue
            outside = {value: tensor for value, tensor in found.items() if value.uses()}
            for value, tensor in outside.items():
                _replace(graph, value, tensor, names)
            changed |= bool(outside)
            if outside:
                self.journal.fire(RULE, walk.node_label(node))
        return changed


class _Plan:
    """Which nodes of the main graph to fold: their inputs are constants, and their results do not make it grow."""

    def __init__(self, model: ir.Model, refused: set[ir.Node], refuse: Callable[[ir.Node, str], None]) -> None:
        self._functions = {(domain, name) for domain, name, _ in model.functions}
        self._refuse = refuse
        chosen: dict[ir.Node, None] = {}
        for node in model.graph:
            if node not in refused and self._is_candidate(node, chosen) and self._is_bounded(node):
                chosen[node] = None
        for turn in range(_MOST_TURNS):
            dropped = self._growing(chosen, whole=turn == _MOST_TURNS - 1)
            if not dropped:
                break
            chosen = _without(chosen, dropped)
        self.nodes = list(chosen)

    def _say(self, node: ir.Node, why: str) -> bool:
        self._refuse(node, why)
        return False

    def _is_candidate(self, node: ir.Node, chosen: Mapping[ir.Node, None]) -> bool:
        if node.domain or node.op_type in _NEVER or (node.domain, node.op_type) in self._functions:
            return False
        inputs = [value for value in node.inputs if value is not None]
        if not inputs or not all(is_constant(value) or value.producer() in chosen for value in inputs):
            return False
        if any(a.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS) for a in node.attributes.values()):
            return False
        training = node.attributes.get("training_mode")
        if training is not None and (training.is_ref() or training.as_int()):
            return False
        if any(value.is_graph_output() for value in node.outputs):
            return self._say(node, "its result is an output of the graph")
        if any(value.dtype == ir.DataType.STRING for value in (*inputs, *node.outputs)):
            return self._say(node, "strings are not folded")
        if any(v.uses() and (v.dtype is None or not isinstance(v.type, ir.TensorType)) for v in node.outputs):
            return self._say(node, "the dtype of its result is not known, or it is no tensor")
        return True

    def _is_bounded(self, node: ir.Node) -> bool:
        for value in node.outputs:
            size = nbytes(value)
            if size is None and node.op_type in _MAY_GROW:
                return self._say(node, "the size of its result is not known")
            if size is not None and size > _MOST_BYTES:
                return self._say(node, f"its result would take {size:,} bytes")
        return True

    def _growing(self, chosen: Mapping[ir.Node, None], *, whole: bool) -> set[ir.Node]:
        """The last nodes of groups that would make the weights grow. A group is what hangs together through results,
        not through constants, so that one refusal does not take unrelated ones along."""
        group = _groups(chosen)
        freed: dict[ir.Node, int] = {}
        made: dict[ir.Node, int] = {}
        last: dict[ir.Node, list[ir.Node]] = {}
        for node in chosen:
            root = group[node]
            for value in dict.fromkeys(node.inputs):
                if value is not None and is_constant(value) and _only_read_by(value, root, group, node):
                    freed[root] = freed.get(root, 0) + (_tensor_bytes(value))
            leaving = [v for v in node.outputs if any(use.node not in chosen for use in v.uses())]
            if leaving:
                made[root] = made.get(root, 0) + sum(nbytes(value) or 0 for value in leaving)
                last.setdefault(root, []).append(node)
        over = {root: size - freed.get(root, 0) for root, size in made.items()}
        over = {root: size for root, size in over.items() if size > _SLACK}
        if whole:
            dropped = {node for node in chosen if group[node] in over}
        else:
            dropped = {node for root in over for node in _largest(last[root])}
        for node in dropped:
            self._say(node, f"its result would make the weights {over[group[node]]:,} bytes larger")
        return dropped


def _largest(nodes: Sequence[ir.Node]) -> list[ir.Node]:
    """Those that make at least half of what the one that makes most does."""
    sizes = [sum(nbytes(value) or 0 for value in node.outputs) for node in nodes]
    return [node for node, size in zip(nodes, sizes, strict=True) if 2 * size >= max(sizes)]


def is_constant(value: ir.Value) -> bool:
    """Whether the value never changes, without reading it; see `facts.constant`."""
    if value.is_initializer():
        return value.const_value is not None and not value.is_graph_input()
    node = value.producer()
    return node is not None and node.op_type == "Constant" and not node.domain


def nbytes(value: ir.Value) -> int | None:
    """Bytes of the tensor, packed, when its shape and dtype are known."""
    if value.dtype is None or value.dtype == ir.DataType.STRING or value.shape is None or not value.shape.is_static():
        return None
    return -(-value.dtype.bitwidth * math.prod(value.shape.numpy()) // 8)


def _tensor_bytes(value: ir.Value) -> int:
    tensor = ir.convenience.get_const_tensor(value)
    return tensor.nbytes if tensor is not None else 0


def _without(chosen: Mapping[ir.Node, None], dropped: set[ir.Node]) -> dict[ir.Node, None]:
    """What is left when `dropped` are taken out, and with them all that read them."""
    left: dict[ir.Node, None] = {}
    for node in chosen:
        makers = (value.producer() for value in node.inputs if value is not None)
        if node not in dropped and not any(maker in chosen and maker not in left for maker in makers):
            left[node] = None
    return left


def _groups(chosen: Mapping[ir.Node, None]) -> dict[ir.Node, ir.Node]:
    """Each node's group, by one of its nodes: nodes that read each other's results (union-find)."""
    parent = {node: node for node in chosen}

    def root(node: ir.Node) -> ir.Node:
        while parent[node] is not node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for node in chosen:
        for value in node.inputs:
            maker = value.producer() if value is not None else None
            if maker is not None and maker in parent:
                parent[root(maker)] = root(node)
    return {node: root(node) for node in chosen}


def _only_read_by(value: ir.Value, root: ir.Node, group: Mapping[ir.Node, ir.Node], first: ir.Node) -> bool:
    """Whether the group alone reads a constant, which then goes. True for one reader only, so that it counts once."""
    if value.is_graph_output():
        return False
    uses = value.uses()
    return all(group.get(use.node) is root for use in uses) and next(iter(uses)).node is first


def _able(nodes: Iterable[ir.Node], known: Mapping[ir.Value, ir.TensorProtocol]) -> list[ir.Node]:
    """Those of `nodes`, in order, all of whose inputs are there."""
    made: set[ir.Value] = set()
    able = []
    for node in nodes:
        if all(v is None or is_constant(v) or v in known or v in made for v in node.inputs):
            made.update(node.outputs)
            able.append(node)
    return able


def _wanted(nodes: Sequence[ir.Node]) -> list[ir.Value]:
    """Results that someone outside reads."""
    inside = set(nodes)
    return [v for node in nodes for v in node.outputs if any(use.node not in inside for use in v.uses())]


def _batch(
    model: ir.Model,
    nodes: Sequence[ir.Node],
    wanted: Sequence[ir.Value],
    known: Mapping[ir.Value, ir.TensorProtocol],
) -> ir.Model:
    """A model without inputs that computes `wanted`, as `v0`, `v1`, …; weights are shared, not copied."""
    new: dict[ir.Value, ir.Value] = {}
    initializers: list[ir.Value] = []
    copies: list[ir.Node] = []
    for node in nodes:
        for value in node.inputs:
            if value is None or value in new:
                continue
            tensor = known.get(value)
            tensor = ir.convenience.get_const_tensor(value) if tensor is None else tensor
            assert tensor is not None
            new[value] = _initializer(tensor, f"c{len(initializers)}")
            initializers.append(new[value])
        inputs = [None if value is None else new[value] for value in node.inputs]
        copy = ir.Node("", node.op_type, inputs, node.attributes.values(), num_outputs=len(node.outputs))
        for index, (mine, theirs) in enumerate(zip(copy.outputs, node.outputs, strict=True)):
            mine.name = f"n{len(copies)}_{index}" if theirs.name else ""
            new[theirs] = mine
        copies.append(copy)
    for index, value in enumerate(wanted):
        new[value].name, new[value].type, new[value].shape = f"v{index}", value.type, value.shape
    graph = ir.Graph(
        [],
        [new[value] for value in wanted],
        nodes=copies,
        initializers=initializers,
        opset_imports={"": model.graph.opset_imports.get("", 1)},
        name="constants",
    )
    return ir.Model(graph, ir_version=model.ir_version)


def _initializer(tensor: ir.TensorProtocol, name: str) -> ir.Value:
    own = ir.LazyTensor(lambda: tensor, dtype=tensor.dtype, shape=_shape(tensor), name=name)
    return ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=_shape(tensor), const_value=own)


def _shape(tensor: ir.TensorProtocol) -> ir.Shape:
    return ir.Shape(tensor.shape.numpy())


def _run(model: ir.Model, runtime: str) -> Outputs:
    options = Options(optimization="disable", time_limit=_TIME_LIMIT)
    with runtimes.get(runtime).prepare(model, options) as session:
        return session.run({})


def _tensor(found: object, value: ir.Value) -> ir.TensorProtocol:
    array = np.asarray(found)
    return ir.tensor(np.ascontiguousarray(array).reshape(array.shape), name=value.name)


def _mismatch(value: ir.Value, tensor: ir.TensorProtocol) -> str:
    """Why a result is not what was inferred, or nothing."""
    if tensor.dtype != value.dtype:
        return f"it came out as {tensor.dtype.name.lower()}, {str(value.dtype).lower()} was inferred"
    shape = tuple(tensor.shape.numpy())
    inferred = facts.dims(value)
    if inferred is not None:
        fits = len(inferred) == len(shape) and all(
            not isinstance(dim, int) or dim == size for dim, size in zip(inferred, shape, strict=True)
        )
        return "" if fits else f"it came out with shape {list(shape)}, {list(inferred)} was inferred"
    maker = value.producer()
    inputs = maker.inputs if maker is not None else ()
    room = sum(_tensor_bytes(v) for v in inputs if v is not None and is_constant(v)) + _SLACK
    return "" if tensor.nbytes <= room else f"its result would make the weights {tensor.nbytes - room:,} bytes larger"


def _integers(value: ir.Value) -> ir.TensorProtocol | None:
    """The constant that an integer value of rank 0 or 1 is known to be, if something reads it as a value."""
    if value.dtype not in _INTEGERS or value.shape is None or len(value.shape) > 1 or not value.uses():
        return None
    if value.is_graph_output():
        return None
    elements = facts.integers(value)
    if elements is None or not all(isinstance(element, int) for element in elements):
        return None
    shape = (len(elements),) if len(value.shape) else ()
    size = value.shape[0] if len(value.shape) else 1
    if (isinstance(size, int) and size != len(elements)) or 8 * len(elements) > _SLACK:
        return None
    kind = _INTEGERS[value.dtype]
    info = np.iinfo(kind)
    if any(not info.min <= int(element) <= info.max for element in elements):
        return None
    return ir.tensor(np.array([int(element) for element in elements], kind).reshape(shape), name=value.name)


def _replace(graph: ir.Graph, value: ir.Value, tensor: ir.TensorProtocol, names: Names) -> None:
    """An initializer takes the value's name and its readers."""
    name = value.name or names.free("folded")
    value.name = names.free(f"{name}_folded")
    tensor.name = name
    new = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=_shape(tensor), const_value=tensor)
    graph.register_initializer(new)
    value.replace_all_uses_with(new)
