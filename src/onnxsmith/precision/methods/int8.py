"""Weights and activations in 8 bits, with ranges from data."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import onnx_ir as ir

from onnxsmith.precision.clipping import clipped
from onnxsmith.precision.forms.base import PRODUCTS
from onnxsmith.precision.keeping import Keep
from onnxsmith.precision.methods._products import always, apart, endless, layers, touching
from onnxsmith.precision.methods.base import Layer, Method, Work
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

    def schemes(self) -> tuple[str, ...]:
        return WHOLE, CLIPPED, ALONE

    def layers(self, work: Work) -> list[Layer]:
        return layers(work)

    def variant(self, work: Work, keep: Keep) -> ir.Model:
        assert work.ranges is not None
        bad = endless(work)
        form = work.form
        alone = work.scheme == ALONE
        ranges = work.ranges if work.scheme in ("", WHOLE) else self._clipped(work)
        return work.arithmetic.quantised(
            "static",
            {*keep, *apart(work.model, keep), *touching(work.model, bad)},
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
        return always(work)

    def _clipped(self, work: Work) -> Ranges:
        """Narrower ranges; measured once for a model."""
        assert work.ranges is not None
        assert work.runtime is not None
        if work.clipped is None:
            samples = itertools.islice(work.calibration, _CLIPPED_ON)
            tensors = _read_by_products(work.model)
            work.clipped = clipped(work.model, work.ranges, tensors, work.runtime, samples)
        return work.clipped


def _read_by_products(model: ir.Model) -> list[str]:
    """Activations that products read."""
    found = (value for node in model.graph if node.op_type in PRODUCTS for value in node.inputs[:2])
    return list(dict.fromkeys(one.name or "" for one in found if one is not None and one.const_value is None))
