"""Runs onnxruntime-web, the WebAssembly build of ONNX Runtime for browsers, in node, in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import Problem, problem
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Port, Signature
from onnxsmith.runtimes._child import Child
from onnxsmith.runtimes._isolated import Isolated, Turn
from onnxsmith.runtimes._lacking import refuse_defaults, refuse_other_devices, refuse_ports
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Preparer, Runtime, Session, Source

_HOST = "onnxsmith.runtimes._web_host"
_DTYPES = {
    "undefined", "bool", "float16", "float", "double", "string",
    *(f"{kind}{size}" for kind in ("int", "uint") for size in (8, 16, 32, 64)),
}  # fmt: skip
_LARGEST = 2**31
"""Limits the bytes of a model: WebAssembly addresses 4 GB, and holds both the file and its weights."""


class Web(Runtime):
    """Runs onnxruntime-web's execution provider `wasm`, in one thread.

    The runtime needs node and the npm package onnxruntime-web. The package lies in the folder that
    `ONNXSMITH_ONNXRUNTIME_WEB` names, in `node_modules` of the current folder or of a folder above it, or is installed
    for all users. Only tensors can be inputs and outputs, and not in bfloat16, float8, complex numbers or less than 8
    bits. An input with a default cannot be given. Models of more than 2 GB are refused. For a model in memory, weights
    in external data are copied.
    """

    title = "ONNX Runtime Web"
    levels = ("all", "extended", "basic", "disable")

    def missing(self) -> Problem | None:
        from onnxsmith.runtimes import _web_package

        node, package = _web_package.node(), _web_package.package()
        if node is not None and package is not None:
            return None
        lacking = " and ".join(
            name for name, there in (("node", node), ("the npm package onnxruntime-web", package)) if there is None
        )
        return Problem(
            "runtime/not-installed",
            f"{lacking} cannot be found",
            why=f"the package is looked for in ${_web_package.VARIABLE}, node_modules here and above, and npm's folder",
            fix=("install node 20 or later (https://nodejs.org); " if node is None else "")
            + "npm install onnxruntime-web; or use --runtime onnxruntime",
        )

    def newest_opset(self) -> int:
        child = Child(_HOST, "main", what="onnxruntime-web")
        try:
            from onnxsmith.graph.structure.versions import newest

            head, _ = child.ask({"do": "newest", "opset": newest().opset}, time_limit=60)
            return int(head["opset"])
        finally:
            child.close()

    def prepare(self, source: Source, options: Options | None = None) -> Session:
        return _Isolated().alone(source, options or Options())

    def preparer(self, *, keep: int = 1) -> Preparer:
        return _Isolated(keep)


class _Isolated(Isolated):
    def __init__(self, keep: int = 1) -> None:
        super().__init__(_HOST, "onnxruntime-web", refers=False, keep=keep, levels=Web.levels)

    def turned(
        self, source: Source, options: Options, interface: Signature | None = None, read: ir.Model | None = None
    ) -> Turn:
        refuse_other_devices("onnxruntime-web", options)
        return super().turned(source, options, interface, read)

    def check(self, interface: Signature) -> None:
        def reason(_: str, port: Port) -> str:
            return "" if port.dtype in _DTYPES else f"JavaScript has no arrays of {port.dtype}"

        refuse_ports("onnxruntime-web", interface, reason)

    def session(self, interface: Signature, request: dict[str, Any], options: Options, weight: int) -> Turn:
        path = Path(request["path"])
        if path.stat().st_size + weight > _LARGEST:
            raise problem(
                "runtime/memory",
                f"the model has {(path.stat().st_size + weight) / 2**30:.1f} GB, which WebAssembly cannot hold",
                why="WebAssembly addresses at most 4 GB, which must hold the file and its weights",
                fix="use --runtime onnxruntime, or a smaller model",
            )
        return _Turn(self, interface, {**request, "external": _external(path)}, options, weight)


class _Turn(Turn):
    def run(self, feeds: Feeds) -> Outputs:
        refuse_defaults("onnxruntime-web", self.signature, feeds, self.head["inputs"])
        outputs = super().run(feeds)
        return {port.name: outputs[port.name] for port in self.signature.outputs}


def _external(path: Path) -> list[tuple[str, str]]:
    """Returns the files of external data: their names in the model, and their paths."""
    tensors = (tensor for tensor in walk.tensors(load(path)) if isinstance(tensor, ir.ExternalTensor))
    return sorted({(str(tensor.location), str(path.parent / tensor.location)) for tensor in tensors})
