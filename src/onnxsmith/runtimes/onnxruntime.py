"""ONNX Runtime, in a process of its own, because native kernels crash on graphs that are not their usual ones."""

from __future__ import annotations

import contextlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.model.load import load
from onnxsmith.model.signature import signature
from onnxsmith.model.versions import newest
from onnxsmith.problem import OnnxsmithError, Problem
from onnxsmith.runtimes import _feeds
from onnxsmith.runtimes._child import Child
from onnxsmith.runtimes._isolated import Isolated
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Preparer, Runtime, Session, Source, on_disk, onnx_source

_HOST = "onnxsmith.runtimes._onnxruntime_host"


class OnnxRuntime(Runtime):
    """onnxruntime with the CPU, CUDA or TensorRT execution provider."""

    title = "ONNX Runtime"
    package = "onnxruntime"
    extra = "cpu"

    def missing(self) -> Problem | None:
        if find_spec("onnxruntime") is not None:
            return None
        return Problem(
            "runtime/not-installed",
            "onnxruntime is not installed",
            fix="pip install 'onnxsmith[cpu]', or 'onnxsmith[gpu]' for CUDA; or use --runtime reference",
        )

    def newest_opset(self) -> int:
        known = newest()
        return int(limits(ir_version=known.ir, opset=known.opset)["opset"])

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        return _Session(onnx_source(source), options or Options())

    def preparer(self) -> Preparer:
        return Isolated(_HOST, "onnxruntime", _request)


class _Session(Session):
    """After a crash the next run starts the child again: what one input does to a runtime says nothing of others."""

    def __init__(self, source: Path | ir.Model, options: Options) -> None:
        self._options = options
        self.signature = signature(load(source))
        self._stack = contextlib.ExitStack()
        self._crashed = False
        with contextlib.ExitStack() as stack:
            self._path = stack.enter_context(on_disk(source))
            stack.callback(lambda: self._child.close())
            head = self._start()
            self._stack = stack.pop_all()
        self.provider = head["provider"]
        self.nodes_by_provider: dict[str, int] = head["nodes"]

    def _start(self) -> dict[str, Any]:
        self._child = Child(_HOST, "main", what="onnxruntime")
        head, _ = self._child.ask(_request(self._path, self._options), time_limit=self._options.time_limit)
        self._crashed = False
        return head

    def run(self, feeds: Feeds) -> Outputs:
        _feeds.check(feeds, self.signature)
        if self._crashed:
            self._child.close()
            self._start()
        try:
            _, outputs = self._child.ask({"do": "run"}, dict(feeds), time_limit=self._options.time_limit)
        except OnnxsmithError as error:
            self._crashed = error.problem.id == "runtime/died"
            raise
        return outputs

    def close(self) -> None:
        self._stack.close()


def _request(path: Path, options: Options) -> dict[str, Any]:
    return {
        "do": "prepare",
        "path": str(path.absolute()),
        "provider": options.provider,
        "optimization": options.optimization,
        "threads": options.threads,
    }


def available_providers() -> dict[str, Any]:
    """What the installed onnxruntime says of itself: its `version` and its execution `providers`.

    Asked in a child process: the GPU wheel can crash on a machine without CUDA.
    """
    return _ask({"do": "about"})


def limits(*, ir_version: int, opset: int) -> dict[str, Any]:
    """What the installed onnxruntime really takes, found by trying, in a child process.

    `ir` and `opset` are the newest versions, from the given ones down, of which it loads a model, 0 for none; `starts`
    says for each CPU, CUDA and TensorRT provider in the build whether it starts on this machine.
    """
    return _ask({"do": "limits", "ir": ir_version, "opset": opset})


def _ask(request: dict[str, Any]) -> dict[str, Any]:
    child = Child(_HOST, "main", what="onnxruntime")
    try:
        head, _ = child.ask(request, time_limit=60)
        return head
    finally:
        child.close()
