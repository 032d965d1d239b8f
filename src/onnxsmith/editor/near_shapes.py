"""Infers the shapes of a few values from the shapes that the file declares around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import onnx_ir as ir

from onnxsmith.graph.shapes.dims import MADE
from onnxsmith.graph.shapes.symbolic_inference import infer
from onnxsmith.graph.structure import walk

Declared = tuple[ir.TypeProtocol | None, ir.Shape | None]

_MOST = 256
"""Limits the nodes that are inferred. A choice: beyond that, inference of the whole graph finds more."""


def inferred_near(
    model: ir.Model, nodes: Iterable[ir.Node], declared: Callable[[ir.Value], Declared]
) -> dict[ir.Value, Declared] | None:
    """Returns the types and shapes of the results of `nodes`. `declared` returns what the file declares for other
    values: inference starts there, and goes further up where a value may hold sizes, or where the file is silent.

    Returns None if the whole graph is needed: a node has bodies or calls a function, a size does not follow, or more
    than 256 nodes would be inferred.
    """
    wanted = dict.fromkeys(nodes)
    part = _Part(model, wanted, declared)
    try:
        for node in wanted:
            part.visit(node)
    except _WholeError:
        return None
    if infer(part.model()) is not None:
        return None
    found = {old: part.values[old] for node in wanted for old in node.outputs if old.name}
    if not all(is_known(new.type, new.shape) for new in found.values()):
        return None
    return {old: (new.type, new.shape) for old, new in found.items()}


def is_known(type_: ir.TypeProtocol | None, shape: ir.Shape | None) -> bool:
    """Whether a value is a tensor whose dtype, rank and sizes are known, as numbers or by names of the file."""
    if not isinstance(type_, ir.TensorType) or shape is None:
        return False
    texts = [dim.value for dim in shape if isinstance(dim, ir.SymbolicDim)]
    return not any(text is None or MADE.search(text) or "(" in text for text in texts)


class _WholeError(Exception):
    """Says that the whole graph has to be inferred."""


class _Part:
    """Copies nodes, and what their shapes depend on."""

    def __init__(self, model: ir.Model, wanted: dict[ir.Node, None], declared: Callable[[ir.Value], Declared]) -> None:
        self._model, self._wanted, self._declared = model, wanted, declared
        self._nodes: dict[ir.Node, ir.Node] = {}
        self._inputs: list[ir.Value] = []
        self._stored: list[ir.Value] = []
        self._met: set[ir.Node] = set()
        self.values: dict[ir.Value, ir.Value] = {}

    def visit(self, node: ir.Node) -> None:
        """Copies a node after the nodes that it needs."""
        if node in self._met:
            return
        self._met.add(node)
        inner = node.graph is not self._model.graph or walk.has_subgraphs(node)
        if inner or node.op_identifier() in self._model.functions or len(self._met) > _MOST:
            raise _WholeError
        for value in node.inputs:
            if value is not None and value not in self.values:
                self._reach(value)
        new = ir.Node(
            node.domain,
            node.op_type,
            [None if value is None else self.values[value] for value in node.inputs],
            list(node.attributes.values()),
            overload=node.overload,
            num_outputs=len(node.outputs),
            name=node.name,
        )
        for old, made in zip(node.outputs, new.outputs, strict=True):
            made.name = old.name
            self.values[old] = made
        self._nodes[node] = new

    def _reach(self, value: ir.Value) -> None:
        """Copies a value; the node that makes it, too, if its declaration is not enough."""
        type_, shape = self._declared(value)
        producer = value.producer()
        if producer is not None and (producer in self._wanted or not _is_enough(type_, shape)):
            self.visit(producer)
            return
        tensor = value.const_value if value.is_initializer() and not value.is_graph_input() else None
        if tensor is not None:
            type_, shape = type_ or ir.TensorType(tensor.dtype), ir.Shape(tensor.shape.numpy())
        made = ir.Value(name=value.name, type=type_, shape=shape and shape.copy(), const_value=tensor)
        (self._inputs if tensor is None else self._stored).append(made)
        self.values[value] = made

    def model(self) -> ir.Model:
        """Returns the copied nodes as a model without outputs."""
        graph = ir.Graph(
            self._inputs,
            [],
            nodes=self._nodes.values(),
            initializers=self._stored,
            opset_imports=dict(self._model.opset_imports),
            name="part",
        )
        return ir.Model(graph, ir_version=self._model.ir_version or walk.FIRST_WITH_CONSTANTS)


def _is_enough(type_: ir.TypeProtocol | None, shape: ir.Shape | None) -> bool:
    """Whether nothing else about a value can matter to shapes. The numbers of a short list of integers can: they may be
    sizes."""
    if not is_known(type_, shape) or type_ is None or shape is None:
        return False
    return not (type_.dtype.is_integer() and len(shape) <= 1)
