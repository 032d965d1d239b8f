"""The forms of runtimes that compute on a processor."""

from __future__ import annotations

import platform
from pathlib import Path

from onnxsmith.precision.forms.base import GUIDE, Form


class Onnxruntime(Form):
    """Unsigned activations with a zero point, weights per channel. On an x86 processor without VNNI a sum of two
    products of 8 bits overflows 16 bits, so that weights get 7 bits there."""

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
    """As onnxruntime on a CPU; WebAssembly multiplies 8 bits into sums of 16, so that weights get 7 bits."""

    title = "onnxruntime-web"
    source = GUIDE

    def seven_bits(self) -> bool:
        return True
