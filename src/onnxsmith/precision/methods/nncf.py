"""Quantises models with NNCF."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.precision.forms.base import Form
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods._gemm import written_out
from onnxsmith.precision.methods.base import Layer, Method, Work
from onnxsmith.precision.methods.int4 import Int4
from onnxsmith.precision.methods.int8 import always, apart, endless, layers, touching
from onnxsmith.precision.quantisation_process import NNCF

# What the methods that NNCF computes share.

_MOST = 64
"""The most samples that NNCF runs. A choice: each keep-list runs them three times. With 256 samples the outputs of the
networks tried were no closer to those in float32."""


class _NncfMethod(Method):
    """Quantises with NNCF, the quantiser of OpenVINO, which is installed as an extra."""

    where = ", outside of branches and loop bodies"
    engine = NNCF

    def refusal(self, form: Form, target: str | None) -> Problem | None:
        return NNCF.missing()


def samples(work: Work) -> list[str]:
    """Returns the files with the samples on which NNCF runs the model. The report says so if there are more samples."""
    files = work.arithmetic.samples(work.calibration, _MOST)
    if work.ranges is not None and len(files) < work.ranges.samples:
        said = f"NNCF ran the model on the first {len(files)} of {work.ranges.samples} samples for calibration"
        if said not in work.notes:
            work.notes.append(said)
    return files


# Weights and activations in 8 bits, by NNCF.

PLAIN = "biases as they are"
CORRECTED = "corrected biases"
SMOOTHED = "smoothed activations, corrected biases"


class Int8Nncf(_NncfMethod):
    """Quantises as int8 does, with NNCF's algorithms: biases correct the shifts of means that rounding causes, and
    large values in single channels of activations are moved into weights (SmoothQuant)."""

    title = "int8 weights and activations, by NNCF"
    changes = "Conv, ConvTranspose, Gemm, MatMul, and Gather from a constant table"
    opset = 13
    needs_ranges = True
    has_forms = True

    def refusal(self, form: Form, target: str | None) -> Problem | None:
        if form.symmetric:
            return Problem(
                "quantize/target-form",
                f"{form.title} does not accept the int8 of NNCF",
                why="NNCF writes zero points other than 0, but this runtime supports only signed, symmetric "
                "activations",
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


# Weights of matrix products in blocks of 4 bits, by NNCF.

SYMMETRIC = "symmetric blocks"
ZERO_POINTS = "blocks with a zero point"
_BLOCK = 32
"""Elements of a block, as in `int4`. NNCF skips a matrix whose columns are no multiple of it."""
_MATRIX = 2


class Int4Nncf(_NncfMethod):
    """Quantises as int4 does, with scales that NNCF chooses by the activations on the data (AWQ, scale estimation). The
    weights are stored as DequantizeLinear in blocks, which onnxruntime computes as MatMulNBits."""

    title = "int4 weights of matrix products, by NNCF"
    changes = "MatMul and Gemm with a constant matrix as their second operand, with a multiple of 32 rows"
    opset = 21  # the first whose DequantizeLinear has blocks
    needs_data = True

    def opset_why(self, form: Form) -> str:
        return "DequantizeLinear has blocks and int4 from opset 21 on"

    def schemes(self, work: Work) -> tuple[str, ...]:
        return SYMMETRIC, ZERO_POINTS

    def layers(self, work: Work) -> list[Layer]:
        divisible = {node.name for node in work.model.graph if len(node.inputs) > 1 and _rows(node) % _BLOCK == 0}
        return [layer for layer in Int4().layers(work) if layer.name in divisible]

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        changed = {layer.name for layer in self.layers(work)} - keep
        return work.arithmetic.quantised(
            "four_bits",
            {node.name or "" for node in work.model.graph} - changed,
            of=written_out,
            samples=samples(work),
            symmetric=work.scheme != ZERO_POINTS,
            block=_BLOCK,
        )


def _rows(node: ir.Node) -> int:
    """Returns the length of the axis over which a product sums; 1 if the second operand is no constant matrix."""
    tensor = node.inputs[1].const_value if node.inputs[1] is not None else None
    shape = tensor.shape.numpy() if tensor is not None else ()
    if len(shape) != _MATRIX:
        return 1
    return shape[1 if node.attributes.get_int("transB", 0) else 0]
