"""Asks onnxruntime-web, which runs models in browsers by WebAssembly."""

from __future__ import annotations

from onnxsmith.runtimes import _web_package
from onnxsmith.targets.judges._by_runtime import RuntimeTarget


class Web(RuntimeTarget):
    """Runs onnxruntime-web's WebAssembly in node, without and with its optimisations. WebGPU is predicted by the table
    `webgpu`."""

    title = "onnxruntime-web (WebAssembly)"
    runtime = "web"
    levels = ("disable", "all")

    def version(self) -> str:
        folder = _web_package.package()
        return _web_package.version(folder) if folder is not None else ""
