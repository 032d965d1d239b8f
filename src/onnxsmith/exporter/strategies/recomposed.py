"""torch.export of a module whose lines are replaced by the linter's patches while it is traced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import torch

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.exporter.strategies.base import Captured, Example, merged
from onnxsmith.exporter.strategies.torch_export import STOPPED, TorchExport
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.exporter.tracing.size_branches import SizeBranch, accepted, dynamic_axes, moved, one_sided, other_sizes
from onnxsmith.exporter.tracing.size_guards import compared_with
from onnxsmith.exporter.tracing.trace import tracing
from onnxsmith.runtimes.torch_eager import TorchProgram

if TYPE_CHECKING:
    from onnxsmith.exporter.tracing.trace_patches import Lines

_UNROLLED = "forward/loop-over-blocks"
"""The linter has this problem for loops that a trace unrolls: the trace stops at a later line, or not at all."""
_MOST_SIZES = 8
"""Limits the sizes at which the module is run, to see whether it accepts them. A choice: more is slow for a large
module."""


class TorchRecomposed(TorchExport):
    """Replaces branches on data by torch.where, loops over an axis by scan and loops over blocks by while_loop. Goes
    on, one statement at a time, until the trace succeeds or stops at a line without a patch. The report shows the
    replaced lines."""

    title = "torch.export of lines recomposed + torch.onnx"
    rank = 30
    tried_after = STOPPED
    as_it_is = False

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        from onnxsmith.exporter.tracing.trace_patches import recomposing

        with recomposing(program, example) as lines, torch.no_grad():  # scan would also return values for gradients
            while True:
                try:
                    captured = self.attempt(program, example, opset)
                except OnnxsmithError as error:
                    places = error.lines if isinstance(error, FrozenAxisError) else (error.problem.where,)
                    if _patch(lines, places) or _patch_all(lines, error.problem.id, _UNROLLED):
                        continue
                    raise
                counted = [*captured.counted, *(branch.line for branch in captured.branches)]
                if not _patch(lines, counted, _UNROLLED):
                    return replace(captured, notes=(*lines.notes, *captured.notes))

    def attempt(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        """Captures the program with the lines that are replaced so far."""
        return self.traced(program, example, opset)


class TorchResized(TorchExport):
    """Applies the linter's patches: a branch that only chooses a number becomes arithmetic of sizes, and `int(…)` of
    sizes stays a size. If other branches are left, traces at sizes that take their other side, such as the side with a
    pad, whose pad may be 0. The comparison with the module, also at the example's sizes, shows whether that side is
    right for all sizes. It is tried if a graph differs or has a fixed axis, and the module has branches on sizes."""

    title = "torch.export at other sizes + torch.onnx"
    rank = 17
    tried_after = ("forward/size-compared",)
    as_it_is = False
    patches: ClassVar[tuple[str, ...]] = ("forward/size-as-number", "forward/size-compared")
    """Names the linter's problems whose lines are replaced; their patches compute with sizes."""

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        from onnxsmith.exporter.tracing.trace_patches import recomposing

        with recomposing(program, example) as lines, torch.no_grad():
            if _patch_all(lines, *self.patches):
                try:
                    captured = self.at_other_sizes(program, example, opset, patched=True)
                    return replace(captured, notes=(*lines.notes, *captured.notes))
                except OnnxsmithError:  # a patch took another value for a number, or the patches were not enough
                    pass
        return self.at_other_sizes(program, example, opset, patched=False)

    def at_other_sizes(self, program: TorchProgram, example: Example, opset: int | None, *, patched: bool) -> Captured:
        """Captures at sizes that the module accepts and at which most of its remaining branches go the other way. If no
        branches remain after the patches, captures at the example's sizes."""
        from onnxsmith.verification.inputs.size_proposals import of_feed

        branches, numbers = _branches(program, example)
        now = of_feed(program.signature, example)
        proposed = other_sizes(branches, now, dynamic_axes(program))
        sizes, other = next(accepted(program, example, proposed, _MOST_SIZES), ({}, example))
        if branches and not sizes and not patched:
            raise one_sided(branches)
        captured = self.traced(program, other, opset)
        if not sizes:
            return captured
        at = f"traced at {moved(sizes, now)}, where the branch on sizes at {branches[0].line} runs its other side"
        return replace(captured, notes=(at, *captured.notes), numbers=merged((numbers, captured.numbers)))


def _patch(lines: Lines, places: Sequence[str], problem: str = "") -> bool:
    """Patches the statements at these lines, for this problem of the linter if there is one. Returns whether there was
    a patch."""
    # A list: `any` of a generator would stop at the first patch.
    return any([lines.patch(place, problem) for place in dict.fromkeys(places)])  # noqa: C419


def _patch_all(lines: Lines, *problems: str) -> bool:
    """Patches every statement with one of these problems of the linter. Returns whether there was a patch."""
    return any([lines.patch_all(one) for one in problems])  # noqa: C419


def _branches(program: TorchProgram, example: Example) -> tuple[tuple[SizeBranch, ...], Mapping[str, frozenset[int]]]:
    """Returns the module's branches on sizes, and the numbers with which a trace at the example's sizes compares
    sizes."""
    with tracing(program, example) as trace:
        try:
            numbers = compared_with(trace.exported())
        except Exception:  # noqa: BLE001  # the branch that stops a trace at these sizes may not stop it at others
            numbers = {}
        return tuple(trace.questions.found.values()), numbers
