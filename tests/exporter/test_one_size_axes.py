"""A dynamic axis that was compared at one size only is a problem beside the export, with the line that refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import onnxsmith
from onnxsmith import Verify
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli import application

MODULE = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        return x.reshape(x.shape[0], 4, x.shape[0], 4).sum(2)


def build():
    return Net().eval(), (torch.rand(2, 32),)
"""


class Square(torch.nn.Module):
    """Takes two rows only."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], 4, x.shape[0], 4).sum(2)


class Ones(torch.nn.Module):
    """Takes any number of rows, but only these values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_compiling() and bool((x != 1).any()):
            raise ValueError("an element is not 1")
        return x * 2 + 1


def problems(module: torch.nn.Module, example: torch.Tensor, sizes: tuple[str, ...] = ()) -> tuple[Problem, ...]:
    report = onnxsmith.export(module, (example,), dynamic="x:0=rows", verify=Verify(sizes=sizes)).report
    assert report.verdict is Verdict.DONE, report.headline
    return report.problems


def test_a_quiet_export_names_the_only_size_and_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(MODULE)
    words = ["export", "net.py:build", "--dynamic", "x:0=batch", "-o", "net.onnx", "-q"]
    done = CliRunner().invoke(application.app, words)
    assert done.exit_code == 0
    said = done.stderr
    assert "export/one-size: the module itself accepts only 2 for batch\n" in said
    assert "net.py:6\n" in said
    assert "at 3: RuntimeError: shape '[3, 4, 3, 4]' is invalid for input of size 96" in said
    assert "leave x:0 out of --dynamic" in said
    Path("net.py").write_text(MODULE.replace("x.shape[0], 4, x.shape[0], 4", "x.shape[0], 4, 2, 4"))
    done = CliRunner().invoke(application.app, [*words[:5], "followed.onnx", "-q"])
    assert (done.exit_code, "export/one-size" in done.stderr) == (0, False)


def test_values_that_the_module_refuses_are_told_from_sizes() -> None:
    (said,) = problems(Ones(), torch.ones(2, 3))
    assert (said.id, said.what) == ("export/one-size", "rows was compared at size 2 only")
    assert "the module accepts longer inputs" in said.why


def test_a_size_that_the_user_asked_for_is_no_problem() -> None:
    assert problems(Square(), torch.rand(2, 32), sizes=("rows=2",)) == ()
