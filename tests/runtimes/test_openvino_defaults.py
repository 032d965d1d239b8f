"""With `exact` OpenVINO is told to compute in float32; without it, it keeps its own defaults."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from onnxsmith.runtimes import _openvino_host


@pytest.mark.parametrize(("exact", "asked"), [(True, _openvino_host.EXACT), (False, {})])
def test_what_the_library_is_told(monkeypatch: pytest.MonkeyPatch, exact: bool, asked: dict[str, str]) -> None:
    told: list[dict[str, str]] = []

    def compiled(model: str, device: str, config: dict[str, str]) -> Any:
        told.append(config)
        return SimpleNamespace(inputs=[], outputs=[], create_infer_request=lambda: None)

    core = SimpleNamespace(available_devices=["CPU"], compile_model=compiled, read_model=lambda path: path)
    monkeypatch.setattr(_openvino_host, "_library", lambda: SimpleNamespace(Core=lambda: core))
    request = {"provider": "cpu", "threads": 0, "path": "m.onnx", "exact": exact}
    _openvino_host.Host().prepare(request)
    assert told == [asked]
