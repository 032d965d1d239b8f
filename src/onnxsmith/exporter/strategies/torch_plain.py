"""torch.export and torch.onnx without the translations of this package."""

from __future__ import annotations

from collections.abc import Sequence

from onnxsmith.base.problem import Problem
from onnxsmith.exporter.strategies.torch_export import TorchExport

_TRACED = ("export/no-translation", "export/translation-failed", "forward/size-compared")
"""Problems of modules that could be traced."""


class TorchPlain(TorchExport):
    """Captures like `torch-export`, but translates by PyTorch only, in case a translation of this package is wrong."""

    title = "torch.export + torch.onnx, without translations of onnxsmith"
    rank = 20
    own = False

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether the module could be traced, because this strategy traces it in the same way."""
        return not any(
            problem.id.startswith(("export/", "forward/")) and problem.id not in _TRACED for problem in before
        )
