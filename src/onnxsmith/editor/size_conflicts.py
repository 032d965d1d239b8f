"""Finds the node of an edited model that its operands do not fit, and says what would fit."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.graph.operators.sizes.size_checks import check
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk


def corrected(model: ir.Model, usual: str) -> str:
    """Returns the fix for a model that the last steps made unfit: what the first node with contradicting sizes needs.
    Returns `usual` if no rule for sizes finds such a node."""
    known, _ = inferred(model)
    for graph in walk.graphs(known):
        version = graph.opset_imports.get("", known.opset_imports.get("", 1))
        for node in graph:
            if any(attribute.is_ref() for attribute in node.attributes.values()):
                continue
            try:
                check(node, version, "")
            except OnnxsmithError as error:
                found = error.problem
                advice = "" if "g." in found.fix else f": {found.fix}"  # methods of `build` are no steps
                what = found.what.removeprefix(f"{node.op_type}: ")
                return (
                    f"correct the step: at {node.op_type} {walk.node_label(node)}, {what}{advice}, or leave out the "
                    "step that changed an operand of this node; nothing was written"
                )
    return usual
