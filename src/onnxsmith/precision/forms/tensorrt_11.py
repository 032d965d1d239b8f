"""Describes the form of TensorRT 11."""

from __future__ import annotations

from onnxsmith.precision.forms.base import SignedForm


class TensorRt11(SignedForm):
    """Signed and symmetric, as for every TensorRT."""

    title = "TensorRT 11"
