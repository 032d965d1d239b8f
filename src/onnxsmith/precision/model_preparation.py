"""Prepares a model for quantisation: in float32, simplified, inlined, with constants as initializers and named
nodes."""

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
"""Operators that only quantised models have (ONNX Operators.md, onnxruntime ContribOperators.md)."""


@dataclass(frozen=True)
class Prepared:
    """The prepared model, with node names of the original where possible, and notes on the preparation."""

    model: ir.Model
    notes: tuple[str, ...] = ()
    is_simplified: bool = True


def quantisers(model: ir.Model) -> dict[str, int]:
    """Counts each quantising operator in the model."""
    counts = walk.histogram(model)
    return {name: count for name, count in counts.items() if name.rpartition("::")[2] in QUANTISERS}


def prepared(loaded: ir.Model, *, opset: int, simplified: bool = True) -> Prepared:
    """Returns a copy of the model at `opset` or newer, with inferred shapes, in float32 if it was in float64. It is
    simplified if `simplified` is set. Nothing is compared here: the caller scores the result.

    Raises:
        OnnxsmithError: `opset/…` if the model cannot be raised to `opset`; the errors of `simplify`.
    """
    own = own_weights(loaded)
    notes = [replaceable(own)]
    model = opsets.convert(own, opset if opsets.of(own) < opset else None)
    if is_double(model):
        plain, _ = inlined(model)
        made = single(plain)
        notes.append(
            "" if made is None else "the model is in float64: nodes that are not made narrower compute in float32"
        )
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
    """Gives each node a unique name, so that keep-lists can name it."""
    for node, name in zip(list(walk.nodes(model.graph)), labels(model), strict=True):
        node.name = name
