"""Handles operators of onnxruntime's own domain in a simplified model: the check of the request, and the headline."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.words import several
from onnxsmith.graph.structure import walk

DOMAIN = "com.microsoft"
TARGET = "onnxruntime"


def checked(target: str | None, contrib: bool) -> None:
    """Raises if operators of onnxruntime are requested for another target.

    Raises:
        OnnxsmithError: `simplify/contrib`.
    """
    if contrib and target != TARGET:
        raise problem(
            "simplify/contrib",
            f"operators of {DOMAIN} run on onnxruntime only",
            why=f"the target is {target}" if target is not None else "no target was named",
            fix=f"add --target {TARGET}, or leave out --contrib",
        )


def told(model: ir.Model, part: Simplification) -> str:
    """Returns the headline's note that the model has operators which only onnxruntime supports."""
    made = {op_type for entry in part.fired for op_type in entry.made}
    nodes = [node for node in walk.all_nodes(model) if node.domain == DOMAIN and node.op_type in made]
    if not nodes:
        return ""
    return f"; runs on onnxruntime only: {several(len(nodes), 'operator')} of its own ({DOMAIN})"
