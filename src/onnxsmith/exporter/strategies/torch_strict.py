"""torch.export by way of TorchDynamo, which follows the bytecode of forward: calls of numpy on tensors among it."""

from __future__ import annotations

from collections.abc import Sequence

from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.problem import Problem


class TorchStrict(TorchExport):
    """TorchDynamo reads what Python does instead of running it, so that numpy on a tensor becomes operators; it takes
    fewer modules than the first way."""

    title = "torch.export, strict + torch.onnx"
    rank = 40
    strict = True

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Where the other way of tracing stopped."""
        return any(
            problem.id.startswith(("forward/", "export/frozen-axis", "export/capture-failed")) for problem in before
        )
