"""torch.export at sizes that take the other side of the module's branches on sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.exporter.strategies.base import Captured, Example
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.exporter.tracing.size_branches import SizeBranch, dynamic_axes, one_sided, other_sizes, within
from onnxsmith.exporter.tracing.size_guards import compared_with
from onnxsmith.exporter.tracing.trace import tracing
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram

_MOST = 8
"""Sizes at which the module is run, to see whether it accepts them. A choice: more is slow for a large module."""

PATCHED = ("forward/size-as-number", "forward/size-compared")
"""The linter's problems whose patches compute with sizes."""


class TorchResized(TorchExport):
    """Applies the linter's patches: a branch that only chooses a number becomes arithmetic of sizes, and `int(…)` of
    sizes stays a size. If other branches are left, traces at sizes that take their other side, such as the side with a
    pad, whose pad may be 0. The comparison with the module, also at the example's sizes, shows whether that side is
    right for all sizes."""

    title = "torch.export at other sizes + torch.onnx"
    rank = 17
    as_it_is = False

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether a graph differs or has a fixed axis, and the module has branches on sizes."""
        return any(problem.id == "forward/size-compared" for problem in before)

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        from onnxsmith.exporter.tracing.trace_patches import recomposing

        with recomposing(program, example) as lines, torch.no_grad():
            if any([lines.patch_all(one) for one in PATCHED]):  # noqa: C419  # a generator would stop at the first
                try:
                    return self._turned(program, example, opset, lines.notes)
                except OnnxsmithError:  # a patch took another value for a number, or the patches were not enough
                    pass
        return self._turned(program, example, opset, ())

    def _turned(self, program: TorchProgram, example: Example, opset: int | None, patched: Sequence[str]) -> Captured:
        """Captures at sizes that take the other side of the remaining branches. If no branches remain after the
        patches, captures at the example's sizes."""
        branches, numbers = _branches(program, example)
        sizes = _sizes(program, example, branches)
        if sizes is None:
            if not patched:
                raise one_sided(branches)
            found = super().capture(program, example, opset)
            return replace(found, notes=(*patched, *found.notes))
        from onnxsmith.exporter.inputs.resized_examples import resized

        found = super().capture(program, resized(program, example, sizes), opset)
        known = {symbol: numbers.get(symbol, frozenset()) | some for symbol, some in found.numbers.items()}
        notes = (*patched, _said(sizes, program, example, branches), *found.notes)
        return replace(found, notes=notes, numbers={**numbers, **known})


def _branches(program: TorchProgram, example: Example) -> tuple[tuple[SizeBranch, ...], Mapping[str, frozenset[int]]]:
    """Returns the module's branches on sizes, and the numbers with which a trace at the example's sizes compares
    sizes."""
    numbers: Mapping[str, frozenset[int]] = {}
    with tracing(program, example) as trace:
        try:
            numbers = compared_with(trace.exported())
        except Exception:  # noqa: BLE001  # the branch that stops a trace at these sizes may not stop it at others
            numbers = {}
        return tuple(trace.questions.found.values()), numbers


def _sizes(program: TorchProgram, example: Example, branches: Sequence[SizeBranch]) -> dict[str, int] | None:
    """Returns sizes that the module accepts and at which most of its branches on sizes go the other way."""
    from onnxsmith.verification.inputs.size_proposals import of_feed

    now = of_feed(program.signature, example)
    axes = dynamic_axes(program)
    asked = [sizes for sizes in other_sizes(branches, now, axes) if within(sizes, program.limits)]
    with TorchEager().prepare(program) as session:
        from onnxsmith.exporter.inputs.resized_examples import resized

        for sizes in asked[:_MOST]:
            try:
                session.run(resized(program, example, sizes))
            except OnnxsmithError:
                continue
            return sizes
    return None


def _said(sizes: Mapping[str, int], program: TorchProgram, example: Any, branches: Sequence[SizeBranch]) -> str:
    from onnxsmith.verification.inputs.size_proposals import of_feed

    now = of_feed(program.signature, example)
    moved = ", ".join(f"{dim} = {size}" for dim, size in sizes.items() if now[dim] != size)
    return f"traced at {moved}, where the branch on sizes at {branches[0].line} goes the other way"
