"""Stores constant matrices in blocks of 4 bits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.precision.blockwise_weights import Stored, reasons, stored, written
from onnxsmith.precision.forms.base import Form
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.methods.base import Layer, Method, Work, constant_bytes
from onnxsmith.precision.moments import Moments, total
from onnxsmith.precision.scaled_blocks import Array, Blocks, of_columns

_FOUR = 4
EIGHT = "8 bits"
"""The way to keep layers that 4 bits damage."""
_OPSETS = {False: 13, True: 21}
"""The oldest opset of the form with MatMulNBits, and of DequantizeLinear with blocks (`WeightForm.standard`)."""


@dataclass(frozen=True)
class Scheme:
    """The size of blocks, the bits of tables, and the accuracy level of MatMulNBits: 4 quantises activations when the
    model runs, 0 computes with floats. On a CPU with VNNI, level 4 takes a tenth to a third of the time of float32,
    level 0 two thirds of it."""

    block: int
    table: int = 4
    level: int = 4

    def __str__(self) -> str:
        tables = f", tables of {self.table} bits" if self.table else ""
        return f"blocks of {self.block}{tables}{'' if self.level else ', activations in float'}"


class Int4(Method):
    """Stores matrices of products and tables of Gather in blocks of 4 bits. Products become MatMulNBits, which
    quantises activations when the model runs, or MatMul with a DequantizeLinear. Data is not needed; with data, the
    weights of products are rounded by GPTQ."""

    title = "int4 weights of matrix products and tables"
    changes = "MatMul and Gemm with a constant matrix as their second operand, and Gather and Slice of a constant table"
    opset = _OPSETS[False]
    has_forms = True

    def oldest_opset(self, form: Form) -> int:
        return _OPSETS[form.weights.standard]

    def opset_why(self, form: Form) -> str:
        if form.weights.standard:
            return f"DequantizeLinear supports blocks and int4 from opset {_OPSETS[True]} on"
        return f"the operators with blocks of {_FOUR} bits need opset {_OPSETS[False]} or newer"

    def layers(self, work: Work) -> list[Layer]:
        return [
            Layer(one.name, one.node.op_type, constant_bytes(one.node)) for one in stored(work.model, work.form.weights)
        ]

    def always(self, work: Work) -> Mapping[str, str]:
        return _fixed(work)

    def schemes(self, work: Work) -> tuple[str, ...]:
        return tuple(str(one) for one in _schemes(work))

    def ways_to_keep(self, work: Work) -> tuple[str, ...]:
        return (EIGHT, "") if work.form.weights.mixed else ("",)

    def has_eight(self, work: Work) -> bool:
        return work.form.weights.mixed

    def eight(self, work: Work, keep: Keep) -> Keep:
        if not self.has_eight(work):
            return frozenset()
        return (keep | work.eight if work.kept_as == EIGHT else work.eight - keep) - work.always

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        form = work.form.weights
        known = _schemes(work)
        scheme = next((one for one in known if str(one) == work.scheme), known[0])
        wider = self.eight(work, keep)
        inputs = _inputs(work)
        blocks = {
            one.name: _blocks(one, work, scheme, 8 if one.name in wider else 4, inputs)
            for one in stored(work.model, form)
            if one.name not in keep or one.name in wider
        }
        return written(work.model, form, blocks, scheme.level)


def _fixed(work: Work) -> Mapping[str, str]:
    """Returns the layers that always stay, with the reasons; found once."""
    if work.fixed is None:
        work.fixed = reasons(work.model, work.form.weights)
    return work.fixed


def _schemes(work: Work) -> list[Scheme]:
    """Returns the schemes, from the smallest file to the most exact. 4 bits damage tables more than products, because
    the errors of a table are not averaged by a sum."""
    form = work.form.weights
    layers = list(stored(work.model, form))
    # Sizes that give every layer the same blocks are one scheme.
    ways = dict.fromkeys(tuple(one.block(size, form) for one in layers) for size in form.blocks)
    blocks = [max((size for size in way if size), default=form.blocks[0]) for way in ways]
    if form.standard:
        return [Scheme(size, table=0) for size in blocks]
    if not any(one.is_table for one in layers):
        return [*(Scheme(size, table=0) for size in blocks), Scheme(blocks[-1], table=0, level=0)]
    return [Scheme(blocks[0]), *(Scheme(size, table=8) for size in blocks), Scheme(blocks[-1], table=8, level=0)]


def _blocks(one: Stored, work: Work, scheme: Scheme, bits: int, inputs: Mapping[int, list[str]]) -> Blocks:
    form = work.form.weights
    if one.is_slice:
        return of_columns(one.array())
    width = max(bits, scheme.table) if one.is_table else bits

    def moments() -> Array | None:
        # Tables sum over nothing, and GPTQ is written for 4 bits (`gptq_blocks.compensated`).
        if work.moments is None or not one.is_product or bits != _FOUR:
            return None
        try:
            return total(work.moments.of(name) for name in inputs[id(one.value)])
        except OnnxsmithError as error:
            work.notes.append(f"weights were rounded without the data: {error.problem.what}")
            work.moments = work.moments.none()
            return None

    return work.arithmetic.blocks(
        one.value, one.array, moments, by_columns=one.by_columns, bits=width,
        block=one.block(scheme.block, form) or scheme.block, symmetric=form.standard,
    )  # fmt: skip


def _inputs(work: Work) -> Mapping[int, list[str]]:
    """Returns, by the id of its value, the tensors with which each matrix is multiplied. With data, these tensors will
    be measured, except in branches and loop bodies."""
    found: dict[int, list[str]] = defaultdict(list)
    fixed = _fixed(work)  # without the user's list, because the moments do not depend on it
    widths: dict[str, int] = {}
    for one in stored(work.model, work.form.weights):
        value = one.node.inputs[0]
        if value is not None and one.is_product and one.name not in fixed:
            found[id(one.value)].append(value.name or "")
            if one.node.graph is work.model.graph and value.const_value is None:
                widths[value.name or ""] = one.rows
    if work.moments is None and work.ranges is not None and work.runtime is not None:
        work.moments = Moments(work.model, work.runtime, work.calibration, widths)
    return found
