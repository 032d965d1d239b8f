"""Describes the forms of runtimes that compute on a CPU."""

from __future__ import annotations

import platform
from pathlib import Path

from onnxsmith.precision.forms.base import GUIDE, Form


class Onnxruntime(Form):
    """Unsigned activations with a zero point, weights per channel. On an x86 processor without VNNI weights get 7 bits,
    because there a sum of two 8-bit products overflows 16 bits."""

    title = "onnxruntime on a CPU"
    source = GUIDE

    def seven_bits(self) -> bool:
        if platform.machine().lower() in ("arm64", "aarch64"):
            return False
        cpu = Path("/proc/cpuinfo")
        return not (cpu.is_file() and "vnni" in cpu.read_text(encoding="utf-8", errors="replace"))


class Openvino(Form):
    """Unsigned activations with a zero point, weights per channel."""

    title = "OpenVINO on a CPU"
    source = (
        "https://docs.openvino.ai/2025/openvino-workflow/model-optimization-guide/quantizing-models-post-training.html"
    )


class Web(Form):
    """The same as onnxruntime on a CPU, but weights always get 7 bits, because WebAssembly adds 8-bit products in 16
    bits."""

    title = "onnxruntime-web"
    source = GUIDE

    def seven_bits(self) -> bool:
        return True
