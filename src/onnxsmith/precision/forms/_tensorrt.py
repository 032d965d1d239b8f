"""Describes the form of every TensorRT: signed and symmetric, with 4-bit weights read by DequantizeLinear."""

from __future__ import annotations

from onnxsmith.precision.forms.base import Form, WeightForm


class SignedForm(Form):
    """Zero points are 0, and biases stay floats."""

    activations = "QInt8"
    symmetric = True
    around = ("Add", "MaxPool")
    more = {"QuantizeBias": False}  # noqa: RUF012 — the base class says that it is constant
    quantises_addends = False
    folds_casts = False  # it accepts 8-bit weights only through DequantizeLinear
    weights = WeightForm((128, 64), standard=True)
    source = "https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/work-quantized-types.html"
