"""torch.export with the lines at which the trace stops replaced by the patches of `diagnose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from onnxsmith.exporter.strategies.base import Captured, Example
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.exporter.tracing.recomposing import recomposing
from onnxsmith.problem import OnnxsmithError, Problem
from onnxsmith.runtimes.torch_eager import TorchProgram


class TorchRecomposed(TorchExport):
    """Replaces branches on data by torch.where, loops over an axis by scan, one statement at a time, until the trace
    succeeds or stops at a line without a patch. The report shows the replaced lines."""

    title = "torch.export of lines recomposed + torch.onnx"
    rank = 30
    as_it_is = False

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """After a trace that stopped at a line."""
        return any(
            problem.id.startswith(("forward/", "export/frozen-axis", "export/capture-failed")) for problem in before
        )

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        return self.recomposed(program, example, lambda: super(TorchRecomposed, self).capture(program, example, opset))

    def recomposed(self, program: TorchProgram, example: Example, trace: Callable[[], Captured]) -> Captured:
        """The result of `trace`, which is called again after each line that was replaced."""
        with recomposing(program, example) as lines, torch.no_grad():  # scan would also return values for gradients
            while True:
                try:
                    captured = trace()
                except OnnxsmithError as error:
                    places = error.lines if isinstance(error, FrozenAxisError) else (error.problem.where,)
                    patched = [lines.patch(where) for where in dict.fromkeys(places)]
                    if not any(patched) and not lines.patch_all(error.problem.id):
                        raise
                    continue
                return replace(captured, notes=(*lines.notes, *captured.notes))
