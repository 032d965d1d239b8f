"""onnxruntime-web."""

from __future__ import annotations

from onnxsmith.precision.forms.base import GUIDE, Form


class Web(Form):
    """As onnxruntime on a CPU; WebAssembly multiplies 8 bits into sums of 16, so that weights get 7 bits."""

    title = "onnxruntime-web"
    source = GUIDE

    def seven_bits(self) -> bool:
        return True
