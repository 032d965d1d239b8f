"""Runs a torch model in a process of its own, where its memory can be measured and a crash does no harm."""

from __future__ import annotations

from typing import Any

from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes._isolated import Isolated, Turn
from onnxsmith.runtimes.base import Options, Session, Source


class TorchPreparer(Isolated):
    """Prepares one torch model, which a text names, with `weight` bytes of parameters. The caller has to give the
    interface: that of the module's program, with dynamic axes as texts."""

    def __init__(self, target: str, on: str, weight: int) -> None:
        super().__init__("onnxsmith.deployment.benching._torch_host", on)
        self._target, self._on, self._bytes = target, on, weight

    def prepare(self, source: Source, options: Options | None = None, *, interface: Signature | None = None) -> Session:
        assert interface is not None
        options = options or Options()
        request: dict[str, Any] = {"do": "prepare", "of": self.what, "path": self._target, "on": self._on}
        made = Turn(self, interface, {**request, "threads": options.threads}, options, self._bytes)
        made.begin()
        return made
