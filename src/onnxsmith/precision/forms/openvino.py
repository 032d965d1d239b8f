"""OpenVINO on a CPU."""

from __future__ import annotations

from onnxsmith.precision.forms.base import Form


class OpenVino(Form):
    """Unsigned activations with a zero point, weights per channel."""

    title = "OpenVINO on a CPU"
    source = (
        "https://docs.openvino.ai/2025/openvino-workflow/model-optimization-guide/quantizing-models-post-training.html"
    )
