"""Libraries of CUDA are loaded before the first session that needs them, and nothing of it reaches the protocol. What
sessions are asked for."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnxruntime
import pytest

from onnxsmith.deployment.benching.subjects import subjects
from onnxsmith.runtimes import _onnxruntime_host as sessions
from onnxsmith.runtimes._isolated import _request
from onnxsmith.runtimes.base import Options


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


def test_memory_is_planned_for_repeated_runs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def started(_path: str, options: Any, _provider: str) -> onnxruntime.InferenceSession:
        asked.append(options.enable_mem_pattern)
        return onnxruntime.InferenceSession(sessions.tiny(7, 8), options)

    monkeypatch.setattr(sessions, "started", started)
    for options in (Options(), replace(Options(), repeated=True), subjects(["m.onnx"], [])[0][0].options):
        sessions.Host().prepare(_request(Path("m.onnx"), None, options, "the model"))
    assert asked == [False, True, True]
