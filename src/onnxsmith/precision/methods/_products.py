"""What methods with 8 bits for weights and activations share: their layers, and the nodes that stay as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.precision.forms.base import PRODUCTS
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods.base import Layer, Work, constant_bytes, is_embedding


def layers(work: Work) -> list[Layer]:
    """The products, and Gathers from a constant table, in float32."""
    return [Layer(node.name or "", node.op_type, constant_bytes(node)) for node in work.model.graph if is_layer(node)]


def always(work: Work) -> Mapping[str, str]:
    """Layers for which no range can be given, with the reason."""
    bad = endless(work)
    names = {layer.name for layer in layers(work)}
    return dict.fromkeys(names & touching(work.model, bad), "a value that it reads or makes is not finite")


def endless(work: Work) -> set[str]:
    """Tensors with values that are not finite, such as a mask of -inf: no range can be given for them."""
    ranges = work.ranges.by_name if work.ranges is not None else {}
    return {name for name, one in ranges.items() if not one.largest < math.inf}


def touching(model: ir.Model, tensors: set[str]) -> set[str]:
    """Nodes that read or make one of the tensors."""
    return {
        node.name or ""
        for node in model.graph
        if any(value is not None and value.name in tensors for value in (*node.inputs, *node.outputs))
    }


def is_layer(node: ir.Node) -> bool:
    """Whether the node is a product in float32, or looks rows up in a constant table."""
    if is_embedding(node):
        return True
    floats = all(value is None or value.dtype == ir.DataType.FLOAT for value in node.inputs[:2])
    return node.op_type in PRODUCTS and not node.domain and floats


def apart(model: ir.Model, keep: Keep) -> set[str]:
    """Nodes that lie beside no quantised product: to convert for them alone costs accuracy and time. And readers of the
    graph's outputs: the range of a Relu would be taken for the output that it reads."""
    beside: set[ir.Value | None] = set()
    for node in model.graph:
        if is_layer(node) and node.name not in keep:
            beside.update((*node.inputs, *node.outputs))
    beside.discard(None)
    results = set(model.graph.outputs)
    return {
        node.name or ""
        for node in model.graph
        if not is_layer(node)
        and (
            node.op_type in ("Gather", *PRODUCTS)
            or not results.isdisjoint(node.inputs)
            or beside.isdisjoint((*node.inputs, *node.outputs))
        )
    }


def namesakes(model: ir.Model, operators: Mapping[str, str]) -> set[str]:
    """Nodes that are called like one of the operators and are of another domain than it: onnxruntime's quantiser reads
    names alone, and takes the Attention of ONNX for its own."""
    return {
        node.name or "" for node in model.graph if node.op_type in operators and node.domain != operators[node.op_type]
    }


def addends(model: ir.Model) -> set[str]:
    """Adds of a constant, such as the bias behind a MatMul."""
    return {
        node.name or ""
        for node in model.graph
        if node.op_type == "Add" and any(one is not None and one.const_value is not None for one in node.inputs)
    }
