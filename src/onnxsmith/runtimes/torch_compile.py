"""PyTorch with torch.compile, for measurements: the module's graph compiled by torch's own compiler."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from onnxsmith.runtimes.base import Options, Session, Source
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram


class TorchCompile(TorchEager):
    """Runs the torch module through `torch.compile`, with its default backend, without gradients. It compiles at the
    first run, and again for other shapes."""

    title: ClassVar[str] = "PyTorch, torch.compile"

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        if isinstance(source, TorchProgram):
            import torch

            source = replace(source, module=torch.compile(source.module))  # type: ignore[arg-type]
        return super().prepare(source, options)
