"""torch.export of a module that is told that nobody exports it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from onnxsmith.exporter.strategies.base import Captured, Example
from onnxsmith.exporter.strategies.torch_export import TorchExport
from onnxsmith.problem import Problem
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.seams.base import replaced
from onnxsmith.seams.torch.flags import exporting


class TorchCalled(TorchExport):
    """`torch.compiler.is_exporting()` and `is_compiling()` are False while the module is traced, so that its branches
    on them go as they do when it is called."""

    title = "torch.export, branches on exporting as when called + torch.onnx"
    rank = 15

    def is_worth_it(self, before: Sequence[Problem]) -> bool:
        """Where the module in the traced path gave something else than the module as it is called."""
        return any(problem.id == "export/other-path" for problem in before)

    def capture(self, program: TorchProgram, example: Example, opset: int | None) -> Captured:
        with _told(program.module):
            return super().capture(program, example, opset)


@contextmanager
def _told(module: torch.nn.Module) -> Iterator[None]:
    """Inside, every call of the module is made with torch's flags down."""
    forward = module.forward

    def called(*args: object, **kwargs: object) -> object:
        with exporting(False):
            return forward(*args, **kwargs)

    with replaced(module, "forward", called):
        yield
