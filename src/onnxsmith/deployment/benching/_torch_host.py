"""Runs in the child process of `torch_child.py`. Loads a torch model and times it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.comparison.outputs.sides import as_programs, side
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes._hosting import Hosting
from onnxsmith.runtimes.base import Outputs, Value
from onnxsmith.runtimes.torch_eager import TorchProgram, TorchSession


class Host(Hosting[TorchSession]):
    """Holds torch models."""

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        """Is never closed, because the models live as long as the process."""

    def about(self) -> dict[str, Any]:
        import torch

        return {"version": torch.__version__}

    def prepare(self, request: dict[str, Any]) -> tuple[TorchSession, dict[str, Any]]:
        one = side(request["path"], None, self._stack, in_pieces=False)
        program = as_programs(one, one)[0].source
        assert isinstance(program, TorchProgram)
        session = runtimes.get(request["on"]).prepare(replace(program, signature=_open(program.signature)))
        assert isinstance(session, TorchSession)
        return session, {"provider": session.provider}

    def run(self, held: TorchSession, values: dict[str, Value]) -> Outputs:
        return held.run(values)

    def call(self, held: TorchSession, values: dict[str, Value]) -> Callable[[], object]:
        return held.call(values)

    def around(self, held: TorchSession, values: dict[str, Value]) -> str:
        return "the call of the module"


def _open(interface: Signature) -> Signature:
    """Returns the interface with inputs of any size, because the caller has checked the sizes."""
    ports = (
        replace(port, shape=None if port.shape is None else tuple(f"{port.name}_{i}" for i in range(len(port.shape))))
        for port in interface.inputs
    )
    return Signature(tuple(ports), interface.outputs)


def _translate(error: Exception) -> OnnxsmithError:
    return problem("runtime/failed", "the torch module failed", why=f"{type(error).__name__}: {error}"[:600])


def main() -> None:
    """Runs the child process."""
    serve(Host(), _translate)
