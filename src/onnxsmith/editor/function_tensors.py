"""Tensors of local functions: selectors find the nodes there, not the tensors. What to do instead."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.structure import walk


def refusal(model: ir.Model, name: str) -> OnnxsmithError | None:
    """The error for a name that only a tensor of a local function has; None if no function has it."""
    for (domain, called, _), function in model.functions.items():
        inside = f"{domain}::{called}"
        for graph in (function.graph, *walk.nested(function)):
            if any(value.name == name for value in (*graph.inputs, *(v for node in graph for v in node.outputs))):
                node = next((node for node in graph if any(value.name == name for value in node.outputs)), None)
                return problem(
                    "edit/no-match",
                    f"the tensor {name!r} is inside the local function {inside}",
                    why="each call of a function has tensors of its own: selectors find its nodes, and not its tensors",
                    fix=_instead(node, name, inside),
                )
    return None


def _instead(node: ir.Node | None, name: str, function: str) -> str:
    inline = f'inline the function first: do = "inline", function = "{function}"'
    if node is None:
        return inline
    held = next(iter(node.attributes.values()), None)
    if node.op_type == "Constant" and held is not None and not held.is_ref() and isinstance(held.value, int | float):
        return (
            f'to change the constant in every call: do = "set", node = {{ gives = "{name}" }}, '
            f"attributes = {{ {held.name} = {held.value:.9g} }} with the new number; for one call, {inline}"
        )
    return f'select its node: {{ gives = "{name}" }}; or {inline}'
