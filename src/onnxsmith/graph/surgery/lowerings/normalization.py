"""Normalizations that older opsets do not have."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering, rank
from onnxsmith.graph.surgery.node_insertion import Inserter

_REDUCES_BY_OPERAND = 18
"""The first opset in which ReduceMean takes its axes as an operand."""


class LayerNormalizationByMeans(Lowering):
    """Lowers a LayerNormalization to means over its axes.

    The body of the specification flattens the tensor and restores its shape by a Reshape, which fails at size 0 before
    opset 14, and its variance E[x²] - E[x]² loses its digits beside a large mean.
    """

    operators: ClassVar[dict[str, int]] = {"LayerNormalization": 17}
    reads = ("axis", "epsilon", "stash_type")

    def lower(self, node: ir.Node, write: Inserter) -> str:
        data, scale, *more = node.inputs
        axis, dims = node.attributes.get_int("axis", -1), rank(data)
        if data is None or scale is None or data.dtype is None or (axis >= 0 and dims is None):
            return "the dtype or the number of dimensions of its operand is unknown"
        axes = list(range(axis, 0)) if dims is None else list(range(axis % dims, dims))
        stash = ir.DataType(node.attributes.get_int("stash_type", int(ir.DataType.FLOAT)))
        wide = data if data.dtype == stash else write.op("Cast", data, to=int(stash))

        def mean(value: ir.Value) -> ir.Value:
            if write.opset >= _REDUCES_BY_OPERAND:
                return write.op("ReduceMean", value, write.constant(axes), keepdims=1)
            return write.op("ReduceMean", value, axes=axes, keepdims=1)

        middle = mean(wide)
        apart = write.op("Sub", wide, middle)
        epsilon = write.constant(node.attributes.get_float("epsilon", 1e-5), stash.numpy())
        spread = write.op("Sqrt", write.op("Add", mean(write.op("Mul", apart, apart)), epsilon))
        made = write.op("Div", apart, spread)
        made = made if data.dtype == stash else write.op("Cast", made, to=int(data.dtype))
        made = write.op("Mul", made, scale)
        made = write.op("Add", made, more[0]) if more and more[0] is not None else made
        results = [made]
        if len(node.outputs) > 1:
            results.append(middle)
        if len(node.outputs) > 2:
            results.append(write.op("Reciprocal", spread))
        write.replace(results)
        return ""
