"""torch.export with comparisons of selected sizes answered as for two elements or more."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.exporter.factory import model_frame
from onnxsmith.exporter.strategies.base import Captured, Example
from onnxsmith.exporter.strategies.torch_recomposed import TorchRecomposed
from onnxsmith.exporter.strategies.torch_strict import TorchStrict
from onnxsmith.exporter.tracing.flat_module import Flat
from onnxsmith.runtimes.torch_eager import TorchProgram


class TorchSelected(TorchRecomposed):
    """Continues where the module asks whether a selection is empty (`if keep.numel() == 0`). The graph follows the
    branch for two or more selected elements. As it lacks the other branch, it is refused unless the user named this
    strategy; the report then names the lines. Other lines that stop the trace are replaced as in `torch-recomposed`, or
    else TorchDynamo traces as in `torch-strict`."""

    title = "torch.export, selections of two elements or more + torch.onnx"
    rank = 45

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether a trace stopped at a value of the data."""
        return any(problem.id.startswith(("forward/", "export/capture-failed")) for problem in before)

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
        notes = tuple(f"{line}: assumes that two elements or more are selected here" for line in known)
        return replace(captured, notes=(*captured.notes, *notes), fixed=(*captured.fixed, *known))
