"""Weights and activations in 8 bits, by NNCF."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.precision.forms.base import Form
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods._nncf import NncfMethod, samples
from onnxsmith.precision.methods._products import always, apart, endless, layers, touching
from onnxsmith.precision.methods.base import Layer, Work

PLAIN = "biases as they are"
CORRECTED = "corrected biases"
SMOOTHED = "smoothed activations, corrected biases"


class Int8Nncf(NncfMethod):
    """As int8, with NNCF's algorithms: the means that rounding moves are corrected in biases, and large values of
    single channels of activations are moved into weights (SmoothQuant)."""

    title = "int8 weights and activations, by NNCF"
    changes = "Conv, ConvTranspose, Gemm, MatMul, and Gather from a constant table"
    opset = 13
    needs_ranges = True
    has_forms = True

    def refusal(self, form: Form, target: str | None) -> Problem | None:
        if form.symmetric:
            return Problem(
                "quantize/target-form",
                f"{form.title} does not take the int8 of NNCF",
                why="its zero points are not 0, and this runtime takes signed, symmetric activations only",
                fix=f"give --to int8 --target {target}",
            )
        return super().refusal(form, target)

    def opset_why(self, form: Form) -> str:
        return "QuantizeLinear and DequantizeLinear have a scale for each channel from opset 13 on"

    def schemes(self, work: Work) -> tuple[str, ...]:
        return PLAIN, CORRECTED, SMOOTHED

    def layers(self, work: Work) -> list[Layer]:
        return layers(work)

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        return work.arithmetic.quantised(
            "static",
            {*keep, *apart(work.model, keep), *touching(work.model, endless(work))},
            samples=samples(work),
            correct_biases=work.scheme != PLAIN,
            smooth=work.scheme == SMOOTHED,
            reduce_range=work.form.seven_bits(),
        )

    def always(self, work: Work) -> Mapping[str, str]:
        return always(work)
