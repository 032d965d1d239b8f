"""Runs ONNX Runtime in its own process, because its native kernels may crash on unusual graphs."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes import _idle
from onnxsmith.runtimes._isolated import Isolated, weight_of
from onnxsmith.runtimes._kept_answers import kept
from onnxsmith.runtimes.base import Options, Preparer, Runtime, Session, Source, appended

_HOST = "onnxsmith.runtimes._onnxruntime_host"


class OnnxRuntime(Runtime):
    """Runs onnxruntime with the CPU, CUDA or TensorRT execution provider."""

    title = "ONNX Runtime"
    package = "onnxruntime"
    extra = "cpu"
    providers = ("cpu", "cuda", "tensorrt")
    levels = ("all", "extended", "basic", "disable")
    takes_threads = True
    profiles = True

    def missing(self) -> Problem | None:
        if find_spec("onnxruntime") is not None:
            return None
        return Problem(
            "runtime/not-installed",
            "onnxruntime is not installed",
            fix='`pip install "onnxsmith[cpu]"`, or `pip install "onnxsmith[gpu]"` for CUDA',
        )

    def newest_opset(self) -> int:
        from onnxsmith.graph.structure.versions import newest

        known = newest()
        return int(limits(ir_version=known.ir, opset=known.opset)["opset"])

    def schemas(self, domains: Collection[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = _ask({"do": "schemas", "domains": sorted(domains)})["schemas"]
        return found

    def kernels(self, domain: str, op: str = "") -> list[dict[str, Any]] | None:
        return _kernels(domain, op)

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        return _Isolated(keep=1).alone(source, options or Options())

    def preparer(self, *, keep: int = 1) -> Preparer:
        return _Isolated(keep)


class _Isolated(Isolated):
    def __init__(self, keep: int) -> None:
        super().__init__(_HOST, "onnxruntime", keep=keep, levels=OnnxRuntime.levels)

    def extended(
        self, file: Path, model: ir.Model, added: bytes, interface: Signature, options: Options | None = None
    ) -> Session | None:
        is_whole = not any(isinstance(tensor, ir.ExternalTensor) for tensor in walk.initializer_tensors(model))
        if file.suffix != ".onnx" or not is_whole:
            return None
        return self.begun(appended(file, added), interface, options or Options(), weight_of(model))


def available_providers() -> dict[str, Any]:
    """Returns facts about the installed onnxruntime: its `version` and its execution `providers`.

    The facts come from a child process, because the GPU wheel can crash on a machine without CUDA.
    """
    return _ask({"do": "about"})


def limits(*, ir_version: int, opset: int) -> dict[str, Any]:
    """Finds the limits of the installed onnxruntime by trial in a child process.

    `ir` and `opset` are the newest versions, not above the given versions, in which onnxruntime loads a model; 0 if it
    loads none. `starts` says for each CPU, CUDA and TensorRT provider in the build whether it starts on this machine.
    """
    return _ask({"do": "limits", "ir": ir_version, "opset": opset})


@cache
def _kernels(domain: str, op: str) -> list[dict[str, Any]] | None:
    """Returns the kernels, which each simplification may need: a child takes 0.4 s to start."""

    def ask() -> Any:
        return _ask({"do": "kernels", "domain": domain, "op": op})["kernels"]

    spec = find_spec("onnxruntime")
    folders = (spec.submodule_search_locations or ()) if spec is not None else ()
    found: list[dict[str, Any]] | None
    found = kept(Path(folders[0]) / "capi", f"kernels {domain} {op}", ask) if len(folders) == 1 else ask()
    return found


def _ask(request: dict[str, Any]) -> dict[str, Any]:
    child = _idle.started(_HOST, "onnxruntime")
    try:
        head, _ = child.ask(request, time_limit=60)
    except BaseException:
        child.close()
        raise
    _idle.retire(child, _HOST, [])  # the next model may need a child
    return head
