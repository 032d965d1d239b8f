"""Describes the form of TensorRT 10."""

from __future__ import annotations

from onnxsmith.precision.forms.base import SignedForm


class TensorRt10(SignedForm):
    """Signed and symmetric, as for every TensorRT."""

    title = "TensorRT 10"
