"""Simplifies the remaining model: small inputs become constants, optional attributes and descriptions are removed."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnxsmith.comparison.reduction.case import Case, fed
from onnxsmith.comparison.reduction.chunk_removal import swept
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.portable_arrays import is_plain
from onnxsmith.comparison.reduction.tensor_facts import tensor
from onnxsmith.graph.structure import schema, walk
from onnxsmith.graph.structure.model_copy import cloned

_SMALL = 16
"""Most elements of an input that becomes a constant. A choice."""


def constants(case: Case, oracle: Oracle) -> Case:
    """Makes small inputs initializers, each if the case still fails."""

    def places(current: Case) -> list[int]:
        found = enumerate(current.model.graph.inputs)
        return [at for at, value in found if _size(current, value) <= _SMALL]

    def take(current: Case, chosen: list[int]) -> list[Case | None]:
        return [constant(current, [current.model.graph.inputs[at].name or "" for at in chosen])]

    return swept(case, oracle, places, take)


def _size(case: Case, value: ir.Value) -> float:
    held = case.feeds.get(value.name or "")
    return held.size if isinstance(held, np.ndarray) and not value.is_initializer() else float("inf")


def constant(case: Case, chosen: list[str]) -> Case | None:
    """Makes these inputs initializers with the fed values."""
    copy = cloned(case.model)
    inputs = copy.graph.inputs
    for at in reversed(range(len(inputs))):
        value = inputs[at]
        held = case.feeds.get(value.name or "")
        if value.name in chosen and isinstance(held, np.ndarray) and not value.is_graph_output():
            inputs.pop(at)
            value.const_value = tensor(held, value.name or "")
            value.shape = ir.Shape(held.shape)
            copy.graph.register_initializer(value)
    return fed(copy, case.feeds)


def readable(case: Case, oracle: Oracle) -> Case:
    """Makes inputs that an `.npz` cannot hold initializers, if the case still fails."""
    odd = [name for name, value in case.feeds.items() if not is_plain(value)]
    smaller = constant(case, odd) if odd else None
    return smaller if smaller is not None and oracle.fails(smaller) else case


def attributes(case: Case, oracle: Oracle) -> Case:
    """Removes optional attributes, as far as the case still fails."""

    def take(current: Case, chosen: list[int]) -> list[Case | None]:
        copy = cloned(current.model)
        held = _optional(copy)
        for at in chosen:
            node, name = held[at]
            del node.attributes[name]
        return [Case(copy, current.feeds)]

    return swept(case, oracle, lambda c: list(range(len(_optional(c.model)))), take)


def _optional(model: ir.Model) -> list[tuple[ir.Node, str]]:
    found: list[tuple[ir.Node, str]] = []
    for node in walk.all_nodes(model):
        known = schema.find(node.op_type, node.domain, model.opset_imports.get(node.domain, 1))
        if node.op_type != "Constant":
            found += [(node, name) for name in node.attributes if known is not None and name in known.defaults]
    return found


def descriptions(case: Case, oracle: Oracle) -> Case:
    """Removes intermediate shapes, descriptions and metadata, if the case still fails."""
    copy = cloned(case.model)
    strip(copy)
    for node in walk.all_nodes(copy):
        for value in node.outputs:
            if not value.is_graph_output():
                value.type, value.shape = None, None
    smaller = Case(copy, case.feeds)
    return smaller if oracle.fails(smaller) else case


def strip(model: ir.Model) -> None:
    """Removes descriptions and metadata, including stack traces."""
    model.doc_string = None
    model.metadata_props.clear()
    held: list[ir.Graph | ir.Function | ir.Node | ir.Value | ir.TensorProtocol] = [
        *walk.graphs(model),
        *model.functions.values(),
        *walk.all_nodes(model),
    ]
    held += [value for node in walk.all_nodes(model) for value in node.outputs]
    for graph in walk.graphs(model):
        held += [*graph.inputs, *graph.initializers.values()]
    held += [tensor for tensor in walk.tensors(model) if not isinstance(tensor, ir.serde.TensorProtoTensor)]
    for item in held:
        item.doc_string = None
        item.metadata_props.clear()
