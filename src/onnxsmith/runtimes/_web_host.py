"""Runs in the child process of `web.py`: starts node with `_web_host.mjs`, and passes requests on to it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from onnxsmith.base import folders
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.system import children, memory_limit
from onnxsmith.runtimes import _onnxruntime_errors, _onnxruntime_host, _web_package, _wire
from onnxsmith.runtimes._child import serve
from onnxsmith.runtimes._hosting import Hosting
from onnxsmith.runtimes.base import Outputs, Value

_LEVELS = {"disable": "disabled", "basic": "basic", "extended": "extended", "all": "all"}
_ABORTED = re.compile(r"Aborted\(|memory access out of bounds|unreachable|null function|table index is out of bounds")
"""Matches messages of JavaScript after a crash of WebAssembly. After such a crash, WebAssembly cannot be used any
more."""
_SCRIPT = Path(__file__).with_name("_web_host.mjs")


class NodeError(Exception):
    """Holds an error of onnxruntime-web, in the words of onnxruntime-web."""


class Host(Hosting[int]):
    """Passes requests on to node, which holds the sessions by their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path()
        self._memory = 0

    def __call__(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        self._memory = request.get("memory", 0)
        released = [number for number in request.get("release", ()) if number in self._held]
        if released:
            self._ask({"do": "about", "release": released})
        if request["do"] in ("hold", "time"):  # node times itself: sending requests belongs to no run
            asked = ("do", "session", "runs", "inner", "budget")
            head, _ = self._ask({key: request[key] for key in asked if key in request}, values)
            return head, {}
        return super().__call__(request, values)

    def about(self) -> dict[str, Any]:
        head, _ = self._ask({"do": "about"})
        return {"version": _web_package.version(self._folder), **head}

    def prepare(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        asked = {key: request[key] for key in ("do", "session", "path", "external")}
        head, _ = self._ask({**asked, "level": _LEVELS[request["optimization"]]})
        return request["session"], {"provider": "wasm", **head}

    def run(self, held: int, values: dict[str, Value]) -> Outputs:
        return self._ask({"do": "run", "session": held}, values)[1]

    def more(self, request: dict[str, Any], values: dict[str, Value]) -> tuple[dict[str, Any], Outputs]:
        if request["do"] != "newest":
            return super().more(request, values)
        opsets = (opset for opset in range(request["opset"], 6, -1) if self._loads(opset))
        return {"opset": next(opsets, 0)}, {}

    def _loads(self, opset: int) -> bool:
        with folders.temporary() as folder:
            path = folder / "model.onnx"
            path.write_bytes(_onnxruntime_host.tiny(7, opset))
            try:
                self._ask({"do": "prepare", "session": 0, "path": str(path), "external": [], "level": "all"})
            except NodeError:
                return False
        self._ask({"do": "about", "release": [0]})
        return True

    def _ask(self, request: dict[str, Any], values: dict[str, Value] | None = None) -> tuple[dict[str, Any], Outputs]:
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        memory_limit.HERE.hold_child(process.pid, self._memory)
        try:
            _wire.send(process.stdin, _wire.encode(request, values))
            head, answer = _wire.receive(process.stdout)
        except (EOFError, OSError):
            _end(f"node ended with status {process.wait()}")
        if _ABORTED.search(head.get("error", "")):
            _end(head["error"])
        if "error" in head:
            raise NodeError(head["error"])
        return head, answer

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            program, folder = _web_package.node(), _web_package.package()
            if program is None or folder is None:
                raise problem(
                    "runtime/not-installed",
                    "onnxruntime-web is not installed, or node is not",
                    fix="install node, then: npm install onnxruntime-web",
                )
            self._folder = folder
            command = [program, str(_SCRIPT), str(_web_package.entry(folder))]
            self._process = children.HERE.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process


def _end(why: str) -> NoReturn:
    """Ends this process as a native crash would, so that the caller replaces the process. The caller shows its last
    output, `why`."""
    sys.stderr.write(why)
    sys.stderr.flush()
    raise SystemExit(70)


def translate(error: Exception) -> OnnxsmithError:
    """Turns onnxruntime's message, which is the same in WebAssembly, into a problem with a fix."""
    known = _onnxruntime_errors.translate(error).problem
    return OnnxsmithError(
        replace(
            known,
            what=known.what.replace("onnxruntime", "onnxruntime-web"),
            fix=known.fix.replace("pip install --upgrade onnxruntime", "npm install onnxruntime-web@latest"),
        )
    )


def main() -> None:
    """Runs the child process."""
    serve(Host(), translate)
