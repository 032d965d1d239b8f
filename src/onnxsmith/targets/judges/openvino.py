"""Asks OpenVINO on the CPU."""

from __future__ import annotations

from onnxsmith.targets.judges._by_runtime import RuntimeTarget


class OpenVino(RuntimeTarget):
    """Asks OpenVINO's CPU plugin, computing in float32."""

    title = "OpenVINO (CPU)"
    runtime = "openvino"
