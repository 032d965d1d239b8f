"""The check for private names of other libraries finds them, and finds none in the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "private_names.py"


def looked(folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    where = [str(folder)] if folder is not None else []
    return subprocess.run([sys.executable, str(TOOL), *where], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("from torch._ops import OpOverload", "torch._ops.OpOverload"),
        ("from torch.export import _trace", "torch.export._trace"),
        ("import torch.utils._pytree", "torch.utils._pytree"),
        ("import torch\ntorch._check(True)", "torch._check"),
        ("import torch as t\nt.ops.aten._x", "torch.ops.aten._x"),
        ("from unittest import mock\nimport torch\nmock.patch.object(torch.nn.Module, 'to', 1)", "mock.patch.object"),
        ("import onnx_ir as ir\nsetattr(ir, 'x', 1)", "setattr"),
    ],
)
def test_it_finds_them(source: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(source)
    found = looked(tmp_path)
    assert found.returncode == 1
    assert name in found.stdout


@pytest.mark.parametrize("source", ["from torch import nn", "import torch\ntorch.__version__", "self._own = 1"])
def test_it_finds_no_others(source: str, tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(source)
    assert looked(tmp_path).returncode == 0


def test_there_is_none() -> None:
    found = looked()
    assert found.returncode == 0, found.stdout
