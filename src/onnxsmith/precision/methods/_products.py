"""Finds the layers of methods with 8-bit weights and activations, and the nodes that these leave as they are."""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.precision.forms.base import PRODUCTS
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods.base import Layer, Work, constant_bytes, is_embedding


def layers(work: Work) -> list[Layer]:
    """Returns the products, and the Gathers from a constant table, in float32."""
    return [Layer(node.name or "", node.op_type, constant_bytes(node)) for node in work.model.graph if is_layer(node)]


def always(work: Work) -> Mapping[str, str]:
    """Returns the layers whose tensors have no finite range, with the reason."""
    bad = endless(work)
    names = {layer.name for layer in layers(work)}
    return dict.fromkeys(names & touching(work.model, bad), "a value that it reads or makes is not finite")


def endless(work: Work) -> set[str]:
    """Returns the tensors without a finite range, such as a mask of -inf."""
    ranges = work.ranges.by_name if work.ranges is not None else {}
    return {name for name, one in ranges.items() if not one.largest < math.inf}


def touching(model: ir.Model, tensors: set[str]) -> set[str]:
    """Returns the nodes that read or compute any of the tensors."""
    return {
        node.name or ""
        for node in model.graph
        if any(value is not None and value.name in tensors for value in (*node.inputs, *node.outputs))
    }


def is_layer(node: ir.Node) -> bool:
    """Whether the node is a product in float32, or looks up rows of a constant table."""
    if is_embedding(node):
        return True
    floats = all(value is None or value.dtype == ir.DataType.FLOAT for value in node.inputs[:2])
    return node.op_type in PRODUCTS and not node.domain and floats


def apart(model: ir.Model, keep: Keep) -> set[str]:
    """Returns the nodes, layers aside, that are not next to a quantised layer, because converting for them alone costs
    accuracy and time. Also returns products and Gathers that are no layers, and readers of graph outputs: the quantiser
    would give an output the range of a Relu that reads it."""
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
    """Returns the nodes with the name of one of the operators but another domain. onnxruntime's quantiser ignores
    domains, and mistakes ONNX's Attention for its own."""
    return {
        node.name or "" for node in model.graph if node.op_type in operators and node.domain != operators[node.op_type]
    }


def addends(model: ir.Model) -> set[str]:
    """Returns the Adds of a constant, such as the bias after a MatMul."""
    return {
        node.name or ""
        for node in model.graph
        if node.op_type == "Add" and any(one is not None and one.const_value is not None for one in node.inputs)
    }
