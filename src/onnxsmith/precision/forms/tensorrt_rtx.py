"""Describes the form of TensorRT for RTX."""

from __future__ import annotations

from onnxsmith.precision.forms.base import SignedForm


class TensorRtRtx(SignedForm):
    """Signed and symmetric, as for every TensorRT."""

    title = "TensorRT for RTX"
