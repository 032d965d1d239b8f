"""Refuses models whose opset lacks the operators of a processing."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.surgery import opset_conversion


def refuse_old_opset(model: ir.Model, least: int, lacks: str) -> None:
    """Refuses an opset that lacks the operators. The fix was tried on a copy.

    Raises:
        OnnxsmithError: `edit/old-opset`.
    """
    now = opset_conversion.of(model)
    if now >= least or not now:
        return
    tried: tuple[str, ...] = ()
    command = f"onnxsmith opset MODEL {least} -o opset_{least}.onnx"
    try:
        opset_conversion.convert(cloned(model), least)
        fix = f'convert the model, `{command}`, or put a step before this one: do = "opset", to = {least}'
        tried = (command,)
    except OnnxsmithError as error:
        fix = f"export the model with opset {least}, because its conversion fails: {error.problem.why}"
    raise OnnxsmithError(
        Problem(
            "edit/old-opset",
            f"the processing needs opset {least}, and the model has {now}",
            f"opset {now}",
            f"before opset {least}, {lacks}",
            fix,
            tried,
        )
    )
