"""torch.export, with the lines at which the trace stops written in the way that `diagnose` suggests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from onnxsmith.exporter.strategies.base import Captured, Example
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.exporter.tracing.freezing import FrozenAxisError
from onnxsmith.exporter.tracing.recomposing import recomposing
from onnxsmith.problem import OnnxsmithError, Problem
from onnxsmith.runtimes.torch_eager import TorchProgram


class TorchRecomposed(TorchExport):
    """Branches on data become torch.where, loops over an axis scans, one statement after the other, until the trace
    comes through or stops at a line for which there is no other way. The lines are in the report."""

    title = "torch.export of lines recomposed + torch.onnx"
    rank = 30
    as_it_is = False

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Where a trace stopped."""
        return any(
            problem.id.startswith(("forward/", "export/frozen-axis", "export/capture-failed")) for problem in before
        )

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        with recomposing(program, example) as lines, torch.no_grad():  # scan would give what gradients need as well
            while True:
                try:
                    captured = super().capture(program, example, opset)
                except OnnxsmithError as error:
                    places = error.lines if isinstance(error, FrozenAxisError) else (error.problem.where,)
                    patched = [lines.patch(where) for where in dict.fromkeys(places)]
                    if not any(patched) and not lines.patch_all(error.problem.id):
                        raise
                    continue
                return replace(captured, notes=(*lines.notes, *captured.notes))
