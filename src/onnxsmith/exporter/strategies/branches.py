"""torch.export of both sides of a module's branches, joined by Ifs, or of the side that the user accepts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.exporter.factory import model_frame
from onnxsmith.exporter.strategies.base import Captured, Example
from onnxsmith.exporter.strategies.recomposed import TorchRecomposed, TorchResized
from onnxsmith.exporter.strategies.torch_export import TorchExport, TorchStrict
from onnxsmith.exporter.tracing.flat_module import Flat
from onnxsmith.runtimes.torch_eager import TorchProgram


class TorchBranched(TorchRecomposed):
    """Traces once for each side of the branches on data (`if keep.numel() == 0`, `if x.sum() > 0`). The graph computes
    the condition of the branch, and an If chooses between the graphs; nodes that both have stay before the If. A side
    on which the module raises is not in the graph: inputs that would take it take the other side. Other lines that stop
    the trace are replaced as in `torch-recomposed`."""

    title = "torch.export of both sides of branches on data + torch.onnx"
    rank = 35
    tried_after = ("forward/branch-on-data", "forward/python-value")

    def attempt(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        from onnxsmith.exporter.strategies._data_sides import DataSides

        return DataSides(self, program, example, opset).joined()


class TorchJoined(TorchResized):
    """Traces at the example's sizes, and at sizes that take another side of the module's branches on sizes; the
    linter's patch keeps `int(…)` of sizes a size. An If with the conditions of the branches chooses between the graphs;
    nodes that both have stay before the If. The last traced path has no condition: it serves all inputs that take no
    other path."""

    title = "torch.export of both sides of branches on sizes + torch.onnx"
    rank = 18
    patches = ("forward/size-as-number",)
    each: ClassVar[type[TorchExport]] = TorchExport
    """Captures each side."""

    def at_other_sizes(self, program: TorchProgram, example: Example, opset: int | None, *, patched: bool) -> Captured:
        from onnxsmith.exporter.strategies._size_sides import SizeSides

        captured = SizeSides(self.each(), program, example, opset).joined()
        return replace(captured, how=captured.how.replace(self.each.title, self.title))


class TorchAllSides(TorchJoined):
    """For modules with branches of both kinds: each side of a branch on sizes has both sides of its branches on
    data."""

    title = "torch.export of both sides of branches on sizes and data + torch.onnx"
    rank = 37
    each = TorchBranched

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether a trace stopped at a branch on data, and another strategy's graph has one side of a branch on
        sizes."""
        return super().is_worth_it(before) and self.each().is_worth_it(before)


class TorchSelected(TorchRecomposed):
    """Continues where the module asks whether a selection is empty (`if keep.numel() == 0`), as SuperGlue and
    LightGlue of transformers do. The graph follows the branch for two or more selected elements. As it lacks the
    other branch, it is refused unless the user named this strategy; the report then names the lines. Other lines
    that stop the trace are replaced as in `torch-recomposed`, or else TorchDynamo traces as in `torch-strict`."""

    title = "torch.export, selections of two elements or more + torch.onnx"
    rank = 45
    tried_after = ("forward/", "export/capture-failed")

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        lines: dict[str, None] = {}

        def assumed() -> None:
            lines.setdefault(model_frame(sys._getframe(1), Flat.forward.__code__))

        from onnxsmith.base.seams.torch.selected_sizes import two_or_more

        with two_or_more(assumed):
            try:
                captured = super().capture(program, example, opset)
            except OnnxsmithError as error:
                try:
                    captured = TorchStrict().capture(program, example, opset)
                except OnnxsmithError:
                    raise error from None
        known = tuple(line for line in lines if line)
        notes = tuple(f"{line}: the graph assumes that this line selects two elements or more" for line in known)
        return replace(captured, notes=(*captured.notes, *notes), fixed=(*captured.fixed, *known))
