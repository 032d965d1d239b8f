"""Makes the float32 model that is quantised: simplified, inlined, with constants as initializers and named nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir

from onnxsmith.model.graph import walk
from onnxsmith.model.shapes.inferred import inferred
from onnxsmith.model.surgery import opset as opsets
from onnxsmith.model.surgery.inlining import inlined
from onnxsmith.precision.dtypes import Operators, fill
from onnxsmith.precision.units import labels
from onnxsmith.precision.weights import own_weights, replaceable
from onnxsmith.report.base import Part
from onnxsmith.runtimes import base as runtimes
from onnxsmith.settings import Verify
from onnxsmith.simplifier.simplify import simplify

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
    parts: tuple[Part, ...] = field(default=())


def quantisers(model: ir.Model) -> dict[str, int]:
    """How often each quantising operator occurs in the model."""
    counts = walk.histogram(model)
    return {name: count for name, count in counts.items() if name.rpartition("::")[2] in QUANTISERS}


def prepared(loaded: ir.Model, *, opset: int, sizes: Mapping[str, int] | None, seed: int) -> Prepared:
    """A copy of the model that is simplified and verified, at `opset` at least, with inferred shapes.

    Raises:
        OnnxsmithError: `opset/…` if the model cannot be raised to `opset`; those of `simplify`.
    """
    notes = [replaceable(loaded)]
    target = opset if opsets.of(loaded) < opset else None
    simplified = simplify(own_weights(loaded), opset=target, verify=Verify(sizes=sizes, seed=seed))
    model = simplified.model
    if model is None:
        notes.append(f"the model was not simplified first: {simplified.report.headline}")
        model = opsets.convert(own_weights(loaded), target)
    model, not_inlined = inlined(model)
    model, not_inferred = inferred(model)
    notes += [not_inlined or "", not_inferred or ""]
    fill(model, Operators(model, runtimes.get(runtimes.default())))
    _name(model)
    return Prepared(model, tuple(note for note in notes if note), tuple(simplified.report.parts))


def _name(model: ir.Model) -> None:
    """Gives each node a name of its own, by which a keep-list can mean it."""
    for node, name in zip(list(walk.nodes(model.graph)), labels(model), strict=True):
        node.name = name
