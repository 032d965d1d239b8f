"""Digests of a model: of its graph, of its weights, and of both together. Names of inner tensors and the order of the
nodes do not change them.

The digest of a value is made of its node and of the digests of the node's operands. So a graph of any size has one
digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import onnx_ir as ir

from onnxsmith.graph.structure import attribute_keys, tensor_keys, walk

_FEW = 64
"""Sets the most elements of a tensor of int64 that belongs to the graph, not to the weights. A choice: such tensors are
shapes, axes and paddings, which were attributes in older opsets."""
Known: TypeAlias = "dict[ir.Value, str]"


@dataclass(frozen=True)
class Digests:
    """Holds the digests of a model. Two models with one `whole` compute the same from the same inputs. `weights` is
    that of all weights, in no order."""

    graph: str
    weights: str
    whole: str


def digests(model: ir.Model, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> tuple[Digests, Digests]:
    """Returns the digests, in which inputs and outputs count by their position, and the digests in which they count by
    their position among the names `inputs` and `outputs`, if the model has the same names. So a model whose inputs are
    only in another order is recognised."""
    keys = _Keys()
    weights = _of(sorted(keys.of(one) for one in _weights(model)))
    own = list(model.graph.inputs), list(model.graph.outputs)
    moved = _in_order(model.graph.inputs, inputs), _in_order(model.graph.outputs, outputs)

    def made(ordered: tuple[list[ir.Value], list[ir.Value]]) -> Digests:
        graph, whole = (_Walk(model, keys, with_weights=held).digest(*ordered) for held in (False, True))
        return Digests(graph, weights, whole)

    found = made(own)
    return found, found if moved == own else made(moved)


def of_each_node(model: ir.Model, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> list[tuple[ir.Node, str]]:
    """Returns each node with a digest of what it computes from the inputs of the graph, without the values of weights.
    The order of the inputs is that of `digests`. Constants have no digest: they are weights."""
    walked = _Walk(model, _Keys(), with_weights=False)
    walked.digest(_in_order(model.graph.inputs, inputs), _in_order(model.graph.outputs, outputs))
    return walked.nodes


def weight_of(value: ir.Value | None) -> ir.TensorProtocol | None:
    """Returns the tensor of a value that is a weight; None for others."""
    if value is None:
        return None
    node = value.producer()
    tensor = value.const_value if node is None else constant(node)
    return None if tensor is None or _is_structure(tensor) else tensor


def tensor_digest(tensor: ir.TensorProtocol) -> str:
    """Returns the digest of dtype, shape and values."""
    return _Keys().of(tensor)


def _in_order(values: Sequence[ir.Value], names: Sequence[str]) -> list[ir.Value]:
    by_name = {value.name or "": value for value in values}
    return [by_name[name] for name in names] if set(names) == by_name.keys() else list(values)


def _weights(model: ir.Model) -> Iterable[ir.TensorProtocol]:
    for graph in walk.graphs(model):
        for value in graph.initializers.values():
            if value.const_value is not None and not _is_structure(value.const_value):
                yield value.const_value
    for node in walk.all_nodes(model):
        tensor = constant(node)
        if tensor is not None and not _is_structure(tensor):
            yield tensor


def constant(node: ir.Node) -> ir.TensorProtocol | None:
    """Returns the tensor of a `Constant` node, which is as good as an initializer."""
    if node.op_type != "Constant" or node.domain:
        return None
    held = node.attributes.get("value")
    return None if held is None or held.is_ref() else held.as_tensor()


def _is_structure(tensor: ir.TensorProtocol) -> bool:
    return tensor.dtype is ir.DataType.INT64 and tensor.size <= _FEW


class _Keys:
    """Makes digests of tensors, each once, because weights may be gigabytes long."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}

    def of(self, tensor: ir.TensorProtocol) -> str:
        """Returns the digest of dtype, shape and values. The model keeps the tensor alive."""
        if id(tensor) not in self._known:
            dtype, shape, *held = tensor_keys.with_strings(tensor)
            self._known[id(tensor)] = _of(str(dtype), shape, held)
        return self._known[id(tensor)]


class _Walk:
    """Makes the digest of a model, with the values of its weights or without."""

    def __init__(self, model: ir.Model, keys: _Keys, *, with_weights: bool) -> None:
        self._model, self._keys, self._with_weights = model, keys, with_weights
        self.nodes: list[tuple[ir.Node, str]] = []

    def digest(self, inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]) -> str:
        functions = sorted(
            _of(identifier, self._body(function, list(function.inputs), list(function.outputs), {}))
            for identifier, function in self._model.functions.items()
        )
        used = {node.domain for node in walk.all_nodes(self._model)}
        opsets = sorted((domain, version) for domain, version in self._model.opset_imports.items() if domain in used)
        return _of(opsets, functions, self._body(self._model.graph, inputs, outputs, {}))

    def _body(
        self,
        graph: ir.Graph | ir.Function,
        inputs: Sequence[ir.Value],
        outputs: Sequence[ir.Value],
        outer: Mapping[ir.Value, str],
    ) -> str:
        known: Known = dict(outer)
        stored = graph.initializers.values() if isinstance(graph, ir.Graph) else ()
        known |= {value: self._tensor(value.const_value) for value in stored if value.const_value is not None}
        known |= {value: _of("input", at, known.get(value)) for at, value in enumerate(inputs)}
        nodes = []
        for node in graph:
            tensor = constant(node)
            if tensor is not None:
                known[node.outputs[0]] = self._tensor(tensor)
                continue
            found = self._node(node, known)
            nodes.append(found)
            self.nodes.append((node, found))
            known |= {value: _of(found, at) for at, value in enumerate(node.outputs)}
        return _of(sorted(nodes), [known.get(value, "unknown") for value in outputs])

    def _node(self, node: ir.Node, known: Mapping[ir.Value, str]) -> str:
        plain = [
            (name, _content(one))
            for name, one in sorted(node.attributes.items())
            if one.is_ref() or not walk.holds_subgraphs(one)
        ]
        bodies = [
            (name, self._body(body, list(body.inputs), list(body.outputs), known))
            for name, body in sorted(walk.named_subgraphs(node), key=lambda held: held[0])
        ]
        operands = ["" if value is None else known.get(value, "unknown") for value in node.inputs]
        return _of(node.op_identifier(), plain, bodies, operands, len(node.outputs))

    def _tensor(self, tensor: ir.TensorProtocol) -> str:
        if self._with_weights or _is_structure(tensor):
            return _of("tensor", self._keys.of(tensor))
        dtype, shape = tensor_keys.outline(tensor)
        return _of("weight", dtype.name, shape)


def _content(attribute: ir.Attr) -> Hashable:
    return repr(attribute_keys.exact(attribute))


def _of(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()
