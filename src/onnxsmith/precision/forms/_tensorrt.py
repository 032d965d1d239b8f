"""What every TensorRT wants: signed and symmetric, and weights of 4 bits behind DequantizeLinear."""

from __future__ import annotations

from onnxsmith.precision.forms.base import Form, WeightForm


class SignedForm(Form):
    """Zero points are 0, and biases stay floats."""

    activations = "QInt8"
    symmetric = True
    around = ("Add", "MaxPool")
    more = {"QuantizeBias": False}  # noqa: RUF012 — the base class says that it is constant
    quantises_addends = False
    folds_casts = False  # it takes weights of 8 bits behind DequantizeLinear alone
    weights = WeightForm((128, 64), standard=True)
    source = "https://docs.nvidia.com/deeplearning/tensorrt/latest/inference-library/work-quantized-types.html"
