"""Infers the shapes of one node's results by the engine's rule for its operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from onnxsmith.graph.shapes import symbols
from onnxsmith.graph.shapes.dims import written


def by_rule(context: Any, node: ir.Node, failed: Callable[[Exception], None]) -> bool:
    """Infers a node without branches by the engine's rule, and returns whether there is a rule. If the rule raises,
    calls `failed` with the error and leaves the shapes unknown."""
    infer = rule_for(context, node)
    if infer is None:
        return False
    try:
        for value in node.inputs:
            if value is not None:
                context.name_anonymous_dims(value)
        infer(context, node)
    except Exception as error:  # noqa: BLE001 — an alpha engine may raise anything; the shapes are then unknown
        failed(error)
    for value in node.outputs:
        value.shape = canonical(value.shape)
    return True


def rule_for(context: Any, node: ir.Node) -> Any:
    """Returns the engine's rule for the node's operator; None without one."""
    return context.rules.get(node.domain, node.op_type, context.get_opset_version(node.domain))


def canonical(shape: ir.Shape | None) -> ir.Shape | None:
    """Returns the shape with canonical expressions: 64*n // (16*n), as the engine writes it, becomes 4."""
    if shape is None or shape.is_static():
        return shape
    given = written(shape)
    dims = tuple(symbols.canonical(dim) if isinstance(dim, str) else dim for dim in given)
    return shape if dims == given else ir.Shape(dims)
