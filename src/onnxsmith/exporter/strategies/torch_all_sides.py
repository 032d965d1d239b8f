"""torch.export of both sides of the module's branches on sizes and on data, joined by Ifs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.strategies.base import Captured, Example
from onnxsmith.exporter.strategies.torch_branched import STOPS, TorchBranched
from onnxsmith.exporter.strategies.torch_joined import TorchJoined
from onnxsmith.runtimes.torch_eager import TorchProgram


class TorchAllSides(TorchJoined):
    """For modules with branches of both kinds: each side of a branch on sizes has both sides of its branches on
    data."""

    title = "torch.export of both sides of branches on sizes and data + torch.onnx"
    rank = 37

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether a trace stopped at a branch on data, and another strategy's graph has one side of a branch on
        sizes."""
        found = {problem.id for problem in before}
        return "forward/size-compared" in found and not found.isdisjoint(STOPS)

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        found = super().capture(program, example, opset)
        return replace(found, how=found.how.replace(TorchBranched.title, self.title))

    def side(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        return TorchBranched().capture(program, example, opset)
