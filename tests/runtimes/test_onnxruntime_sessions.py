"""Libraries of CUDA are loaded before the first session that needs them, and nothing of it reaches the protocol."""

from __future__ import annotations

import sys
from typing import Any

import onnxruntime
import pytest

from onnxsmith.runtimes import _onnxruntime_host as sessions


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    made: list[Any] = []
    monkeypatch.setattr(onnxruntime, "InferenceSession", lambda _model, _options, providers: made.append(providers))
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: (sys.stdout.write("no libcudnn"), made.append("loaded")))
    sessions._load_cuda.cache_clear()
    return made


def test_cuda_loads_its_libraries_once(asked: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    sessions.started("m.onnx", None, "CUDAExecutionProvider")
    sessions.started("m.onnx", None, "CUDAExecutionProvider", falls_back=False)
    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert asked == ["loaded", both, ["CUDAExecutionProvider"]]
    assert capsys.readouterr().out == ""


def test_the_cpu_loads_nothing(asked: list[Any]) -> None:
    sessions.started("m.onnx", None, "CPUExecutionProvider")
    assert asked == [["CPUExecutionProvider"]]
