"""The judge of `benchmarks/packages.py` refuses files that are wrong, or right at one size only."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
import torch
from packages import worker
from packages.case import BATCH, Case
from packages.exporters import EXPORTERS
from packages.judge import distance, judge

pytestmark = pytest.mark.torch


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


CASE = Case("scaled", Scaled, lambda batch: (torch.randn(batch, 4),), ({0: "batch"},), BATCH)


def written(folder: Path, text: str) -> Path:
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 20]> {text}'), path)
    return path


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("g (float[N,4] x) => (float[N,4] y) <float two = {2}> { y = Mul (x, two) }", "right"),
        ("g (float[N,4] x) => (float[N,4] y) <float two = {2.01}> { y = Mul (x, two) }", "wrong"),
        ("g (float[N,4] x) => (double[N,4] y) <double two = {2}> { a = Cast <to = 11> (x) y = Mul (a, two) }", "wrong"),
        ("g (float[2,4] x) => (float[2,4] y) <float two = {2}> { y = Mul (x, two) }", "frozen"),
        (
            "g (float[N,4] x) => (float[N,4] y) <float[2,1] two = {2,2}> { y = Mul (x, two) }",
            "frozen",  # a batch of 1 is answered with two rows
        ),
        ("g (float[N,4] x) => (float[N,4] y) { y = NoSuchOperator (x) }", "wrong"),
    ],
)
def test_verdicts(tmp_path: Path, text: str, verdict: str) -> None:
    assert judge(CASE, {"it": written(tmp_path, text)})["it"]["verdict"] == verdict


@pytest.mark.parametrize("tool", EXPORTERS)
def test_each_exporter_writes_what_the_judge_takes(tmp_path: Path, tool: str) -> None:
    path = tmp_path / "model.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        EXPORTERS[tool](CASE, path)
    assert judge(CASE, {tool: path})[tool] == {"verdict": "right", "why": ""}


def test_a_difference_is_relative_to_the_largest_value() -> None:
    wanted = np.array([1000.0, 0.5], np.float32)
    assert not distance(wanted, wanted + np.float32(0.5), 1e-3)
    assert distance(wanted, wanted + np.float32(2), 1e-3)
    assert distance(wanted, np.array([np.inf, 0.5], np.float32), 1e-3)
    assert not distance(np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), 1e-3)


@pytest.mark.parametrize(
    ("work", "found"),
    [
        (lambda: {"verdict": "right"}, {"verdict": "right"}),
        (lambda: 1 / 0, {"error": "ZeroDivisionError: division by zero"}),
        (lambda: time.sleep(9), {"error": "took longer than 90 s of processor time, or 0.2 s"}),
        (lambda: bytearray(16 << 30) and {}, {"error": "MemoryError:"}),
    ],
)
def test_a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[], Any], found: dict[str, str]
) -> None:
    monkeypatch.setattr(worker, "WALL", 0.2 if "sleep" in work.__code__.co_names else 60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's own, of a fork beside threads of another test
        answer = worker.apart(work, tmp_path)
    assert {key: answer[key] for key in found} == found
