"""Weights and activations in 8 bits, with ranges from data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.precision.clipping import clipped
from onnxsmith.precision.forms.base import PRODUCTS
from onnxsmith.precision.keeping import Keep
from onnxsmith.precision.methods.base import Layer, Method, Work, constant_bytes, is_embedding
from onnxsmith.precision.ranges import Ranges

WHOLE = "ranges that hold each value"
CLIPPED = "ranges with the least squared error"
ALONE = "products alone, with the least squared error"
_CLIPPED_ON = 16
"""Samples on which ranges are narrowed. A choice: each runs nine quantisers behind each tensor."""


class Int8(Method):
    """Pairs of QuantizeLinear and DequantizeLinear stand around products and what lies between them (QDQ), weights are
    quantised per channel. The ranges of activations are the least and the greatest value that calibration saw."""

    title = "int8 weights and activations"
    changes = "Conv, ConvTranspose, Gemm, MatMul, and Gather from a constant table"
    opset = 13
    needs_ranges = True
    has_forms = True

    def schemes(self, work: Work) -> tuple[str, ...]:
        return WHOLE, CLIPPED, ALONE

    def layers(self, work: Work) -> list[Layer]:
        return [
            Layer(node.name or "", node.op_type, constant_bytes(node)) for node in work.model.graph if _is_layer(node)
        ]

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        assert work.ranges is not None
        bad = _endless(work)
        form = work.form
        alone = work.scheme == ALONE
        ranges = work.ranges if work.scheme in ("", WHOLE) else self._clipped(work)
        return work.arithmetic.quantised(
            "static",
            {*keep, *_apart(work.model, keep), *_touching(work.model, bad)},
            ranges={name: (one.low, one.high) for name, one in ranges.by_name.items() if name not in bad},
            per_channel=form.per_channel,
            reduce_range=form.seven_bits(),
            weights="QInt8",
            activations=form.activations,
            symmetric=form.symmetric,
            operators=[*PRODUCTS, "Gather", *(() if alone else form.around)],
            more=dict(form.more),
        )

    def always(self, work: Work) -> Mapping[str, str]:
        bad = _endless(work)
        layers = {layer.name for layer in self.layers(work)}
        return dict.fromkeys(layers & _touching(work.model, bad), "a value that it reads or makes is not finite")

    def _clipped(self, work: Work) -> Ranges:
        """Narrower ranges; measured once for a model."""
        assert work.ranges is not None
        assert work.runtime is not None
        if work.clipped is None:
            samples = itertools.islice(work.calibration, _CLIPPED_ON)
            tensors = _read_by_products(work.model)
            work.clipped = clipped(work.model, work.ranges, tensors, work.runtime, samples)
        return work.clipped


def _endless(work: Work) -> set[str]:
    """Tensors with values that are not finite, such as a mask of -inf: no range can be given for them."""
    ranges = work.ranges.by_name if work.ranges is not None else {}
    return {name for name, one in ranges.items() if not one.largest < math.inf}


def _touching(model: ir.Model, tensors: set[str]) -> set[str]:
    """Nodes that read or make one of the tensors."""
    return {
        node.name or ""
        for node in model.graph
        if any(value is not None and value.name in tensors for value in (*node.inputs, *node.outputs))
    }


def _read_by_products(model: ir.Model) -> list[str]:
    """Activations that products read."""
    found = (value for node in model.graph if node.op_type in PRODUCTS for value in node.inputs[:2])
    return list(dict.fromkeys(one.name or "" for one in found if one is not None and one.const_value is None))


def _is_layer(node: ir.Node) -> bool:
    if is_embedding(node):
        return True
    floats = all(value is None or value.dtype == ir.DataType.FLOAT for value in node.inputs[:2])
    return node.op_type in PRODUCTS and not node.domain and floats


def _apart(model: ir.Model, keep: Keep) -> set[str]:
    """Nodes that lie beside no quantised product: to convert for them alone costs accuracy and time. And readers of the
    graph's outputs: the range of a Relu would be taken for the output that it reads."""
    beside: set[ir.Value | None] = set()
    for node in model.graph:
        if _is_layer(node) and node.name not in keep:
            beside.update((*node.inputs, *node.outputs))
    beside.discard(None)
    results = set(model.graph.outputs)
    return {
        node.name or ""
        for node in model.graph
        if not _is_layer(node)
        and (
            node.op_type in ("Gather", *PRODUCTS)
            or not results.isdisjoint(node.inputs)
            or beside.isdisjoint((*node.inputs, *node.outputs))
        )
    }
