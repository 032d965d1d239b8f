"""Defines a form: how a runtime wants a model in int8, and weights in int4."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from onnxsmith.base import rooms
from onnxsmith.base.problem import problem

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""Operators that are quantised for their own sake."""
AROUND = (
    "Add", "AveragePool", "Clip", "Concat", "Flatten", "GlobalAveragePool", "LeakyRelu", "MaxPool", "Mul", "Pad",
    "Relu", "Reshape", "Resize", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze",
)  # fmt: skip
"""Operators that a CPU runtime computes in int8 where they lie beside products, so that nothing is converted there."""
GUIDE = "https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html"


@dataclass(frozen=True)
class WeightForm:
    """How one runtime wants weights of 4 bits.

    `blocks` are the sizes of blocks that its kernels compute, the largest first. With `standard` a DequantizeLinear
    gives the weight, int4 without zero points in whole blocks, else products are MatMulNBits and tables of Gather are
    GatherBlockQuantized.
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
        """Whether a layer that 4 bits damage may have 8."""
        return not self.standard


class Form(ABC):
    """How one runtime wants int8 and int4. Forms are found by walking this folder; their ids are
    names of targets of `check`.

    `activations` is `QInt8` or `QUInt8`; with `symmetric` their zero point is 0. `around` are the operators between
    products that become int8, too. `more` are further options of onnxruntime's quantiser. `folds_casts` says whether
    the runtime computes a Cast and a Mul of constants when it loads the model: weights may be stored that way then.
    `quantises_addends` says whether constants that are added between products, such as the bias behind a MatMul, become
    8 bits. `weights` is the form of int4.
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
        """Whether weights may use 7 bits only, because sums of products of 8 bits can overflow."""
        return False


def form(target: str | None) -> Form:
    """The form for a target; onnxruntime's for None.

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
