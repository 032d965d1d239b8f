"""Makes the float32 model that is quantised: simplified, inlined, with constants as initializers and named nodes."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery import opset_conversion as opsets
from onnxsmith.graph.surgery.float32_copy import is_double, single
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.optimizer.simplify import simplify
from onnxsmith.precision.biases import straighten
from onnxsmith.precision.narrowable_nodes import labels
from onnxsmith.precision.value_dtypes import Operators, fill
from onnxsmith.precision.weight_counts import own_weights, replaceable
from onnxsmith.runtimes import base as runtimes

QUANTISERS = {
    "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "ConvInteger",
    "MatMulInteger", "MatMulNBits", "QAttention", "QGemm", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM",
    "MatMulBnb4", "GatherBlockQuantized",
}  # fmt: skip
"""Operators that a quantised model has (ONNX Operators.md, onnxruntime ContribOperators.md)."""


@dataclass(frozen=True)
class Prepared:
    """The model, its nodes named as in the original where that is possible, and what was done to it."""

    model: ir.Model
    notes: tuple[str, ...] = ()
    is_simplified: bool = True


def quantisers(model: ir.Model) -> dict[str, int]:
    """How often each quantising operator occurs in the model."""
    counts = walk.histogram(model)
    return {name: count for name, count in counts.items() if name.rpartition("::")[2] in QUANTISERS}


def prepared(loaded: ir.Model, *, opset: int, simplified: bool = True) -> Prepared:
    """A copy of the model at `opset` at least, with inferred shapes, in float32 if it is in float64, and simplified
    unless the caller found that this changes its score. Nothing is compared here: the caller scores the result.

    Raises:
        OnnxsmithError: `opset/…` if the model cannot be raised to `opset`; those of `simplify`.
    """
    own = own_weights(loaded)
    notes = [replaceable(own)]
    model = opsets.convert(own, opset if opsets.of(own) < opset else None)
    if is_double(model):
        plain, _ = inlined(model)
        made = single(plain)
        notes.append("" if made is None else "the model is in float64: what is not made narrower computes in float32")
        model = model if made is None else made
    if simplified:
        model = simplify(model, verify=False).model or model
    model, not_inlined = inlined(model)
    model, not_inferred = inferred(model)
    notes += [not_inlined or "", not_inferred or ""]
    straighten(model)
    fill(model, Operators(model, runtimes.get(runtimes.default())))
    _name(model)
    return Prepared(model, tuple(note for note in notes if note), simplified)


def _name(model: ir.Model) -> None:
    """Gives each node a name of its own, by which a keep-list can mean it."""
    for node, name in zip(list(walk.nodes(model.graph)), labels(model), strict=True):
        node.name = name
