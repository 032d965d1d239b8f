"""Torch models as subjects."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import onnxsmith
from onnxsmith.base.report.parts.measurements import Latencies, Measurement, Ratios
from tests.deployment.benching.models import HEAD, saved

SHORT = 0.01
MODULE = """
import torch

class Twice(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

def build():
    return Twice(), (torch.randn(3, 8),)
"""
FILE = HEAD + "g (float[n,8] x) => (float[n,8] y) { a = Relu(x) t = Constant<value = float {2}>() y = Mul(a, t) }"


def target(folder: Path) -> str:
    (folder / "model.py").write_text(MODULE, encoding="utf-8")
    return f"{folder / 'model.py'}:build"


def test_a_torch_model_beside_a_file(tmp_path: Path) -> None:
    result = onnxsmith.bench(
        saved(tmp_path, FILE), target(tmp_path), subjects=["onnxruntime", "torch"], sizes={"n": 5}, seconds=SHORT
    )
    assert result.ok, result.report.problems
    assert result.report.part(Measurement).inputs == {"x": "float32[5, 8]"}
    torchs = result.report.part(Latencies).subjects[1]
    assert torchs.provider == "torch eager, cpu"
    assert torchs.where.endswith("around the call of the module")
    assert torchs.peak is None or torchs.peak >= 0
    assert result.report.part(Ratios).ratios[0].equal is True


def test_a_torch_model_alone_runs_on_its_example_inputs(tmp_path: Path) -> None:
    result = onnxsmith.bench(target(tmp_path), seconds=SHORT)
    assert result.ok
    assert result.report.part(Measurement).inputs == {"x": "float32[3, 8]"}


def test_a_module_is_measured_in_this_process() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    (one,) = onnxsmith.bench((module, (torch.randn(2, 4),)), seconds=SHORT).report.part(Latencies).subjects
    assert one.where == "around the module's call, in this process"
    assert one.peak is None


def test_a_module_keeps_its_state() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x + 1

    module = Counter()
    onnxsmith.bench((module, (torch.randn(2),)), seconds=SHORT)
    assert module.calls == 0


def test_a_compiled_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # for one kernel, precompiled headers and a pool of compilers take longer than they save
    monkeypatch.setenv("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "1")
    result = onnxsmith.bench(target(tmp_path), subjects=["torch", "torch-compile"], seconds=SHORT)
    report = result.report
    assert result.ok, report.problems
    assert [one.subject.rpartition(" on ")[2] for one in report.part(Latencies).subjects] == [
        "torch-eager",
        "torch-compile",
    ]
    assert report.part(Ratios).ratios[0].equal is True
