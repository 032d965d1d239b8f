"""What another process gets to see of a module that cannot be imported."""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.exporter.strategies import _separate_process

CLASS = """
import torch

class Counts(torch.nn.Module):
    def forward(self, x):
        for _ in range(5):
            if x.sum() > 10:
                break
            x = x + 1
        return x
"""
SCRIPT = f"""{CLASS}
import onnxsmith
result = onnxsmith.export(Counts().eval(), (torch.zeros(3, 4),), output="m.onnx", dynamic={{"x": {{0: "n"}}}})
print(result.report.headline)
"""


def source(module: Any) -> str:
    return inspect.getsource(module.forward)


def test_a_loop_of_a_script_is_exported(tmp_path: Path) -> None:
    """The class is of `__main__`, as in most users' scripts; TorchScript compiles its source."""
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "verified on" in done.stdout
    assert (tmp_path / "m.onnx").exists()


@pytest.mark.usefixtures("new_processes")
def test_the_source_of_a_notebook_goes_along() -> None:
    """A cell's code is in no file: the notebook keeps its text in `linecache`."""
    name = "<cell 3>"
    linecache.cache[name] = (len(CLASS), None, CLASS.splitlines(keepends=True), name)
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(CLASS, name, "exec"), space)
    assert "break" in _separate_process.run(source, space["Counts"](), limit=100)


@pytest.mark.usefixtures("new_processes")
@pytest.mark.parametrize("name", ["loaded_from_a_file", "this"])
def test_a_module_of_a_file_is_loaded_from_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No name leads Python to the file, or the name leads it to another one: `this` is a module of Python."""
    path = tmp_path / "counts.py"
    path.write_text(CLASS)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    assert "break" in _separate_process.run(source, module.Counts(), limit=100)
