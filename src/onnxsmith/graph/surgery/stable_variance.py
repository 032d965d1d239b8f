"""Rewrites a variance E[x²] - E[x]², which loses all digits where the mean is large, as E[(x - E[x])²].

The bodies of LayerNormalization, GroupNormalization and MeanVarianceNormalization in the ONNX specification have the
first form; runtimes compute the operators themselves in the second form, or in another stable one.
"""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.attribute_keys import exact


def rewrite(graph: ir.Graph) -> None:
    """Rewrites each such variance of the graph."""
    for node in list(graph):
        if node.op_type != "Sub" or node.domain:
            continue
        of_squares, squared = node.inputs
        mean = _squared(squared)
        data = _data(mean)
        outer = of_squares.producer() if of_squares is not None else None
        if data is None or outer is None or _squared(_data(of_squares)) is not data:
            continue
        inner = mean.producer() if mean is not None else None
        if inner is None or not _reduces_alike(inner, outer):
            continue
        apart = ir.node("Sub", [data, mean])
        square = ir.node("Mul", [apart.outputs[0], apart.outputs[0]])
        variance = ir.node("ReduceMean", [square.outputs[0], *outer.inputs[1:]], dict(outer.attributes.items()))
        for value, name in zip((apart, square, variance), ("apart", "square", "variance"), strict=True):
            value.outputs[0].name = f"{node.outputs[0].name}_{name}"
        graph.insert_before(node, [apart, square, variance])
        node.outputs[0].replace_all_uses_with(variance.outputs[0], replace_graph_outputs=True)


def _squared(value: ir.Value | None) -> ir.Value | None:
    """Returns x if the value is x * x or x to the power of 2; else None."""
    node = value.producer() if value is not None else None
    if node is None or node.domain or len(node.inputs) != 2:
        return None
    one, other = node.inputs
    if node.op_type == "Mul":
        return one if one is other else None
    exponent = facts.constant(other) if node.op_type == "Pow" else None
    return one if exponent is not None and exponent.size == 1 and float(exponent.ravel()[0]) == 2 else None


def _data(value: ir.Value | None) -> ir.Value | None:
    """Returns what a ReduceMean reads that makes the value; None if no ReduceMean makes it."""
    node = value.producer() if value is not None else None
    return node.inputs[0] if node is not None and node.op_type == "ReduceMean" and not node.domain else None


def _reduces_alike(inner: ir.Node, outer: ir.Node) -> bool:
    """Whether two ReduceMean reduce the same axes, and keep the rank."""
    both = (inner, outer)
    axes = [[facts.integers(value) for value in one.inputs[1:]] for one in both]
    attributes = [{name: exact(attribute) for name, attribute in one.attributes.items()} for one in both]
    return axes[0] == axes[1] and attributes[0] == attributes[1] and inner.attributes.get_int("keepdims", 1) == 1
