"""Defines the base of forms: how a runtime needs a model in int8, and weights in int4."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from onnxsmith.base import rooms
from onnxsmith.base.problem import problem

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""Operators for whose sake a model is quantised."""
RECURRENT = ("GRU", "LSTM", "RNN")
"""Operators with products inside."""
AROUND = (
    "Add", "AveragePool", "Clip", "Concat", "Flatten", "GlobalAveragePool", "LeakyRelu", "MaxPool", "Mul", "Pad",
    "Relu", "Reshape", "Resize", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze",
)  # fmt: skip
"""Operators that a CPU runtime computes in int8 next to products, which avoids conversions."""
GUIDE = "https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html"


@dataclass(frozen=True)
class WeightForm:
    """How a runtime needs weights of 4 bits.

    `blocks` are the block sizes of its kernels, the largest first. By default products become MatMulNBits and tables of
    Gather become GatherBlockQuantized. With `standard` a DequantizeLinear computes the weight from int4 numbers without
    zero points, in whole blocks.
    """

    blocks: tuple[int, ...] = (256, 128, 32)
    standard: bool = False
    source: str = (
        "https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.MatMulNBits"
    )

    @property
    def tables(self) -> bool:
        """Whether tables of Gather are stored in blocks."""
        return not self.standard

    @property
    def mixed(self) -> bool:
        """Whether a layer that 4 bits damage may have 8 bits."""
        return not self.standard


class Form(ABC):
    """How a runtime needs int8 and int4. Forms are found by walking this folder; their ids are names of targets of
    `check`.

    `activations` is `QInt8` or `QUInt8`; with `symmetric` their zero point is 0. `around` are the operators between
    products that also become int8. `more` are further options of onnxruntime's quantiser. `folds_casts` says whether
    the runtime folds a Cast and a Mul of constants when it loads the model, so that weights may be stored that way.
    `quantises_addends` says whether constants that are added between products, such as the bias after a MatMul, get 8
    bits. `weights` is the form of int4.
    """

    title: ClassVar[str]
    activations: ClassVar[str] = "QUInt8"
    symmetric: ClassVar[bool] = False
    per_channel: ClassVar[bool] = True
    around: ClassVar[tuple[str, ...]] = AROUND
    more: ClassVar[Mapping[str, Any]] = {}
    folds_casts: ClassVar[bool] = True
    quantises_addends: ClassVar[bool] = True
    weights: ClassVar[WeightForm] = WeightForm()
    source: ClassVar[str]

    def seven_bits(self) -> bool:
        """Whether weights may use only 7 bits, because sums of 8-bit products can overflow."""
        return False


def form(target: str | None) -> Form:
    """Returns the form for a target; onnxruntime's for None.

    Raises:
        OnnxsmithError: `quantize/target` for a name without a form.
    """
    forms = rooms.members("onnxsmith.precision.forms", Form)
    name = (target or "onnxruntime").partition("@")[0]
    if name not in forms:
        raise problem(
            "quantize/target",
            f"no form of int8 or int4 is known for {name}",
            fix=f"give one of: {', '.join(forms)}; or leave --target out, for the form of onnxruntime",
        )
    return forms[name]


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
