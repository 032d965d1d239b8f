"""torch.export with the lines at which the trace stops replaced by the patches of `diagnose`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.exporter.strategies.base import Captured, Example
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.runtimes.torch_eager import TorchProgram

if TYPE_CHECKING:
    from onnxsmith.exporter.tracing.trace_patches import Lines

_UNROLLED = "forward/loop-over-blocks"
"""The linter's problem for loops that a trace unrolls: the trace stops at a later line, or not at all."""


class TorchRecomposed(TorchExport):
    """Replaces branches on data by torch.where, loops over an axis by scan and loops over blocks by while_loop. Goes
    on, one statement at a time, until the trace succeeds or stops at a line without a patch. The report shows the
    replaced lines."""

    title = "torch.export of lines recomposed + torch.onnx"
    rank = 30
    as_it_is = False

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether a trace stopped at a line."""
        return any(
            problem.id.startswith(("forward/", "export/frozen-axis", "export/capture-failed")) for problem in before
        )

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        return self.recomposed(program, example, lambda: super(TorchRecomposed, self).capture(program, example, opset))

    def recomposed(self, program: TorchProgram, example: Example, trace: Callable[[], Captured]) -> Captured:
        """Returns the result of `trace`, which is called again after each replaced line."""
        from onnxsmith.exporter.tracing.trace_patches import recomposing

        with recomposing(program, example) as lines, torch.no_grad():  # scan would also return values for gradients
            while True:
                try:
                    captured = trace()
                except OnnxsmithError as error:
                    if not _patched(lines, error):
                        raise
                    continue
                counted = [*captured.counted, *(branch.line for branch in captured.branches)]
                # A list: `any` of a generator would stop at the first patch.
                if any([lines.patch(where, _UNROLLED) for where in counted]):  # noqa: C419
                    continue
                return replace(captured, notes=(*lines.notes, *captured.notes))


def _patched(lines: Lines, error: OnnxsmithError) -> bool:
    """Patches the lines at which a trace stopped; if they have no patch, all lines with the same problem and all loops
    that a trace unrolls. Returns False if nothing was patched."""
    places = error.lines if isinstance(error, FrozenAxisError) else (error.problem.where,)
    if any([lines.patch(where) for where in dict.fromkeys(places)]):  # noqa: C419
        return True
    return any([lines.patch_all(one) for one in (error.problem.id, _UNROLLED)])  # noqa: C419
