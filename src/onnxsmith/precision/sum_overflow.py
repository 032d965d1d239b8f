"""Finds layers for int8 whose bias and products together do not fit into the 32 bits of their sum."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.precision.ranges import Range

_INT32 = 2.0**31
_NARROWER = 4.0
"""Assumes that the ranges that are used at last may be narrower by this factor than those that hold each value."""


def overflowing(model: ir.Model, ranges: Mapping[str, Range], *, per_channel: bool) -> set[str]:
    """Returns the layers whose sum may overflow. A kernel adds products of 8 bits to a bias of 32 bits, whose scale is
    the product of the scales of the input and of the weights. For a bias that is too large for its scale, onnxruntime's
    quantiser enlarges the scale of the weights until the bias alone fits, which leaves no room for the products."""
    found = set()
    for node in model.graph:
        value = node.inputs[0] if node.inputs else None
        known = ranges.get(value.name or "") if value is not None else None
        rows, bias = _rows(node), facts.constant(node.inputs[_BIAS]) if len(node.inputs) > _BIAS else None
        if known is None or rows is None or bias is None or bias.size != len(rows):
            continue
        if not known.largest < math.inf or not np.isfinite(bias).all() or not np.isfinite(rows).all():
            continue  # such layers stay for another reason
        step = (max(known.high, 0.0) - min(known.low, 0.0)) / 255 / _NARROWER
        large = np.abs(bias.astype(np.float64)).ravel()
        scales = np.abs(rows).max(axis=1) / 127
        if not per_channel:
            scales = np.full_like(scales, scales.max())
        scales = np.maximum(scales, large / (step * _INT32)) if step else scales
        held = np.divide(np.abs(rows).sum(axis=1), scales, out=np.zeros_like(scales), where=scales > 0)
        bound = np.divide(large, step * scales, out=np.zeros_like(scales), where=step * scales > 0) + 255 * held
        if (bound >= _INT32).any():
            found.add(node.name or "")
    return found


_BIAS = 2


def _rows(node: ir.Node) -> npt.NDArray[np.float64] | None:
    """Returns the constant weights of a product with a bias, a row for each output channel; None for other nodes."""
    weights = facts.constant(node.inputs[1]) if len(node.inputs) > 1 else None
    if weights is None or node.domain or weights.ndim < 2:
        return None
    found = weights.astype(np.float64)
    if node.op_type == "Conv":
        return found.reshape(len(found), -1)
    if node.op_type == "ConvTranspose":  # weights: [inputs, outputs of a group, …]
        groups = node.attributes.get_int("group", 1)
        parts = [np.moveaxis(part, 1, 0).reshape(part.shape[1], -1) for part in np.split(found, groups)]
        return np.concatenate(parts)
    if node.op_type == "Gemm":
        return found if node.attributes.get_int("transB", 0) else found.T
    return None
