"""Runs a function on a torch module in a new Python process.

The process is not forked: a fork would copy the caller's locks, and sessions that wait for threads which the fork
lacks. The module is sent by `torch.save`, with `cloudpickle` for classes and functions that cannot be imported (of a
script or a notebook). Python modules that were loaded from a file under another name, such as a factory's file, are
loaded from that file again. TorchScript modules are sent in their own format.
"""

from __future__ import annotations

import copyreg
import importlib.util
import io
import json
import linecache
import marshal
import os
import pickletools
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

import cloudpickle
import torch
from torch.nn.utils.parametrize import is_parametrized

from onnxsmith.base import folders
from onnxsmith.base.folders import OwnPath
from onnxsmith.base.system import children

_BOOT = (
    "import sys; sys.path[:] = {paths!r}; "
    "from onnxsmith.base.system import children; children.HERE.end_with_parent({parent}, {folder!r}); "
    "from {module} import main; main({folder!r})"
)
_TAIL = 500
"""Limits the characters of a dead process's output that are reported. A choice: about the last five lines."""


def run(function: Callable[[Any], Any], given: Any, *, limit: float) -> Any:
    """Calls `function(given)` in another process; the result has to be JSON data. `limit` is in seconds; 0 is no limit.

    Raises:
        RuntimeError: the module cannot be sent, the function raised, or the process died or exceeded the limit.
    """
    with folders.temporary() as folder:
        _send(OwnPath(folder / "job"), (function, given))
        boot = _BOOT.format(
            parent=os.getpid(), paths=[path for path in sys.path if path], module=__name__, folder=str(folder)
        )
        said = folder / "said"
        with said.open("wb") as output:
            command = [sys.executable, "-P", "-c", boot]
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            try:
                code = process.wait(limit or None)
            except subprocess.TimeoutExpired as error:
                raise RuntimeError(f"it took longer than {limit:g} s") from error
            finally:
                process.kill()
                process.wait()
        answer = folder / "answer.json"
        if not answer.exists():
            raise RuntimeError(_death(code, said.read_text(encoding="utf-8", errors="replace")))
        found = json.loads(answer.read_text(encoding="utf-8"))
    if "error" in found:
        raise RuntimeError(found["error"])
    return found["answer"]


def _death(code: int, said: str) -> str:
    """Says why a process ended without a result."""
    cause = f"it died: {children.cause_of_end(code)}"
    lines = " ".join(said.split())[-_TAIL:]
    return cause if children.crashed(code) or not lines else f"{cause}, it said: {lines}"


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # the library has no types
    """Pickles TorchScript modules by `torch.jit.save`, and modules with parametrizations by their attributes: their own
    `__getstate__` raises, to prevent files that a later torch cannot read. Stores in `sources` the text of code that is
    in no file, such as a notebook's."""

    sources: dict[str, str]

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, torch.jit.ScriptModule | torch.jit.ScriptFunction):
            written = io.BytesIO()
            torch.jit.save(obj, written)
            return _compiled, (written.getvalue(),)
        if isinstance(obj, CodeType):  # cloudpickle drops the file name, which leads to the source
            if lines := [] if Path(obj.co_filename).exists() else linecache.getlines(obj.co_filename):
                self.sources[obj.co_filename] = "".join(lines)
            return marshal.loads, (marshal.dumps(obj),)
        if isinstance(obj, torch.nn.Module) and is_parametrized(obj):
            return copyreg.__newobj__, (type(obj),), obj.__dict__  # type: ignore[attr-defined]
        return super().reducer_override(obj)


def _compiled(data: bytes) -> Any:
    return torch.jit.load(io.BytesIO(data))  # type: ignore[no-untyped-call]


def _send(path: OwnPath, job: Any) -> None:
    sources: dict[str, str] = {}
    pickler = type("Pickler", (_Pickler,), {"sources": sources})
    try:
        torch.save(job, path, pickle_module=SimpleNamespace(__name__="cloudpickle", Pickler=pickler))
    except Exception as error:
        raise RuntimeError(f"the module cannot be sent to another process: {type(error).__name__}: {error}") from error
    beside = {"files": _files(path), "sources": sources}
    path.with_suffix(".json").write_text(json.dumps(beside), encoding="utf-8")


def _files(job: OwnPath) -> dict[str, str]:
    """Returns the files of the Python modules that the job names. Other modules of this process are left out: their
    files may be gone, and importing them runs their code."""
    with zipfile.ZipFile(job) as archive:
        (pickled,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        texts = [arg for _, arg, _ in pickletools.genops(archive.read(pickled)) if isinstance(arg, str)]
    named = {text.partition(" ")[0] for text in texts} - {"__main__"}  # a class is "module name"
    return {
        name: str(module.__file__)
        for name, module in list(sys.modules.items())
        if name in named and getattr(module, "__file__", None)
    }


def main(folder: str) -> None:
    """Runs in the new process: reads the job, calls the function, writes the result."""
    place = Path(folder)
    try:
        beside = json.loads((place / "job.json").read_text(encoding="utf-8"))
        for name, file in beside["files"].items():
            if not _is_found(name, file):
                _import(name, file)
        for file, text in beside["sources"].items():
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        function, given = torch.load(place / "job", weights_only=False)
        found = {"answer": function(given)}
    except BaseException as error:  # noqa: BLE001 — the caller reports any error
        found = {"error": f"{type(error).__name__}: {error}"}
    (place / "answer.json").write_text(json.dumps(found), encoding="utf-8")


def _is_found(name: str, file: str) -> bool:
    """Whether Python imports this file under this name. Modules frozen into Python have no file."""
    if name in sys.modules:
        return True
    try:
        spec = importlib.util.find_spec(name)
    except ImportError:
        return False
    return spec is not None and (not spec.has_location or Path(spec.origin or "").resolve() == Path(file).resolve())


def _import(name: str, file: str) -> None:
    """Imports a file under the name of its module in the caller."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
