"""Computes nodes with constant inputs. Nodes that only move data or have an exact result are computed here, all others
at once in a child process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.exact_folding import computed
from onnxsmith.optimizer.movement import is_lazy, moved
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Options, Outputs

_TIME_LIMIT = 60.0
"""Seconds for one batch. A choice: a constant that takes longer is not worth folding."""
_MOST_RUNS = 64
"""The most runs for one model. A choice: enough to isolate a few failing nodes by halving batches."""


class Evaluation:
    """Computes batches of nodes on one runtime, without its optimisations. A batch that fails, crashes or takes longer
    than a minute is halved until each failing node is alone. Such a node is refused, with the reason."""

    def __init__(self, model: ir.Model, runtime: str, refuse: Callable[[ir.Node, str], None]) -> None:
        self._model = model
        self._runtime = runtime
        self._refuse = refuse
        self._runs = 0

    def results(
        self, nodes: Sequence[ir.Node], known: Mapping[ir.Value, ir.TensorProtocol] | None = None
    ) -> dict[ir.Value, ir.TensorProtocol]:
        """Returns the results of `nodes` that other nodes read, if they follow from constants and `known` values."""
        known = dict(known or {})
        inside = set(nodes)
        nodes = _needed(nodes, inside)
        found = _here(nodes, known)
        computable = [node for node in _computable(nodes, known) if node.outputs[0] not in found]
        # a small result that only other nodes of the batch read is not returned, as in a run
        found = {value: held for value, held in found.items() if is_lazy(held) or _is_wanted(value, inside)}
        wanted = [value for node in computable for value in node.outputs if _is_wanted(value, inside)]
        if not wanted:
            return found
        self._runs += 1
        if self._runs > _MOST_RUNS:
            for node in computable:
                self._refuse(node, "too many operators failed before; the rest was not tried")
            return found
        try:
            outputs = _run(_batch(self._model, computable, wanted, known), self._runtime or runtimes.default())
        except OnnxsmithError as error:
            if len(computable) == 1:
                self._refuse(computable[0], f"the node cannot be computed here: {error.problem.what}")
                return found
            middle = len(computable) // 2
            first = self.results(computable[:middle], known)
            return found | first | self.results(computable[middle:], {**known, **first})
        return found | {value: _tensor(outputs[f"v{index}"], value) for index, value in enumerate(wanted)}


def _needed(nodes: Sequence[ir.Node], inside: Set[ir.Node]) -> list[ir.Node]:
    """Returns the nodes, in order, that a wanted result depends on. The others have lost their readers."""
    needed: set[ir.Node] = set()
    for node in reversed(nodes):
        if node in needed or any(_is_wanted(value, inside) for value in node.outputs):
            needed.add(node)
            makers = (value.producer() for value in node.inputs if value is not None)
            needed.update(maker for maker in makers if maker is not None and maker in inside)
    return [node for node in nodes if node in needed]


def _here(nodes: Iterable[ir.Node], known: dict[ir.Value, ir.TensorProtocol]) -> dict[ir.Value, ir.TensorProtocol]:
    """Computes the results that need no runtime, adds them to `known` and returns them. These are results of nodes that
    only move or reshape constants, and of small exact arithmetic."""
    found: dict[ir.Value, ir.TensorProtocol] = {}
    for node in nodes:
        operands = [None if value is None else _held(value, known) for value in node.inputs]
        if not operands or operands[0] is None:
            continue
        result = moved(node, operands[0])
        result = computed(node, operands) if result is None else result
        if result is not None:
            found[node.outputs[0]] = known[node.outputs[0]] = result
    return found


def _held(value: ir.Value, known: Mapping[ir.Value, ir.TensorProtocol]) -> ir.TensorProtocol | None:
    return known[value] if value in known else ir.convenience.get_const_tensor(value)


def _computable(nodes: Iterable[ir.Node], known: Mapping[ir.Value, ir.TensorProtocol]) -> list[ir.Node]:
    """Returns the nodes, in order, whose inputs are all available."""
    made: set[ir.Value] = set()
    computable = []
    for node in nodes:
        if all(v is None or facts.is_constant(v) or v in known or v in made for v in node.inputs):
            made.update(node.outputs)
            computable.append(node)
    return computable


def _is_wanted(value: ir.Value, inside: Set[ir.Node]) -> bool:
    """Whether the value is a graph output, or nodes outside the batch read it."""
    return value.is_graph_output() or any(use.node not in inside for use in value.uses())


def _batch(
    model: ir.Model,
    nodes: Sequence[ir.Node],
    wanted: Sequence[ir.Value],
    known: Mapping[ir.Value, ir.TensorProtocol],
) -> ir.Model:
    """Makes a model without inputs that computes `wanted`, named `v0`, `v1`, …; weights are shared, not copied."""
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
    own = ir.LazyTensor(lambda: tensor, dtype=tensor.dtype, shape=shape(tensor), name=name)
    return ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=shape(tensor), const_value=own)


def shape(tensor: ir.TensorProtocol) -> ir.Shape:
    return ir.Shape(tensor.shape.numpy())


def _run(model: ir.Model, runtime: str) -> Outputs:
    options = Options(optimization="disable", time_limit=_TIME_LIMIT)
    with runtimes.get(runtime).prepare(model, options) as session:
        return session.run({})


def _tensor(found: object, value: ir.Value) -> ir.TensorProtocol:
    array = np.asarray(found)
    return ir.Tensor(np.ascontiguousarray(array).reshape(array.shape), name=value.name)
