"""torch.export with TorchDynamo, which interprets the bytecode of forward and traces numpy calls on tensors."""

from __future__ import annotations

from collections.abc import Sequence

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.strategies.torch_export import TorchExport


class TorchStrict(TorchExport):
    """TorchDynamo interprets the bytecode instead of running it, so that numpy calls on a tensor become operators. It
    supports fewer modules than the first strategy."""

    title = "torch.export, strict + torch.onnx"
    rank = 40
    strict = True

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether a trace stopped at a line."""
        return any(
            problem.id.startswith(("forward/", "export/frozen-axis", "export/capture-failed")) for problem in before
        )
