"""torch.export on the code path of a call: the flags that say "exporting" are off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from onnxsmith.base.problem import Problem
from onnxsmith.base.seams.base import replaced
from onnxsmith.base.seams.torch.flags import exporting
from onnxsmith.exporter.strategies.base import Captured, Example
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.runtimes.torch_eager import TorchProgram


class TorchCalled(TorchExport):
    """Traces with `torch.compiler.is_exporting()`, `is_compiling()` and `torch.onnx.is_in_onnx_export()` False, so that
    the module's branches on them go the same way as in a call."""

    title = "torch.export, branches on exporting as when called + torch.onnx"
    rank = 15

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Whether a graph of the traced path differs from the module as called."""
        return any(problem.id == "export/other-path" for problem in before)

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        with _flags_off(program.module):
            return super().capture(program, example, opset)


@contextmanager
def _flags_off(module: torch.nn.Module) -> Iterator[None]:
    """Runs every call of the module in the block with torch's flags off."""
    forward = module.forward

    def called(*args: object, **kwargs: object) -> object:
        with exporting(False):
            return forward(*args, **kwargs)

    with replaced(module, "forward", called):
        yield
