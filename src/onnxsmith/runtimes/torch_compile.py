"""Runs PyTorch with torch.compile, for measurements. Torch's own compiler compiles the module's graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from onnxsmith.base.seams.base import alone
from onnxsmith.runtimes.base import Options, Session, Source
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram


class TorchCompile(TorchEager):
    """Runs the torch module through `torch.compile`, with its default backend, without gradients. The module is
    compiled at the first run, and again for other shapes."""

    title: ClassVar[str] = "PyTorch, torch.compile"

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        if isinstance(source, TorchProgram):
            import torch

            around, compiles = source.around, _Compiles()
            with compiles.quiet():  # the compiler imports modules of torch that warn of others
                module = torch.compile(source.module)
            source = replace(source, module=module, around=lambda: compiles.inside(around()))  # type: ignore[arg-type]
        return super().prepare(source, options)


class _Compiles:
    """Hides the compiler's warnings in the first call, and costs nothing in later calls."""

    def __init__(self) -> None:
        self._done = False

    def inside(self, around: AbstractContextManager[Any]) -> AbstractContextManager[Any]:
        """Returns the context of a call: without warnings for the first call."""
        if self._done:
            return around
        self._done = True
        return self._both(around)

    @contextmanager
    def _both(self, around: AbstractContextManager[Any]) -> Iterator[None]:
        with self.quiet(), around:
            yield

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Ignores warnings. Other threads wait: the filters belong to the process."""
        with alone(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
