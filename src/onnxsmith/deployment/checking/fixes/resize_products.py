"""Writes Resize of fixed sizes as products with constant matrices."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.deployment.checking.fixes._node_replacement import rewritten, sizes
from onnxsmith.deployment.checking.fixes._shaped_copy import Places, constant
from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.surgery.node_insertion import Inserter
from onnxsmith.runtimes import base as runtimes

_MOST = 2**20
"""Largest number of elements of a matrix. A choice: 4 MB in float32."""


class ResizeProducts(Fix):
    """Each mode of Resize works axis by axis, and each axis is a linear map. Its matrix is the result of Resize itself
    on the unit vectors, so that it includes antialiasing and every coordinate transformation mode.

    Refused:
    1. Sizes are symbolic or computed, or a matrix has more than a million elements.
    2. The values are not float32, or the coordinates are those of `tf_crop_and_resize`.
    """

    rank = 17

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        if "Resize" not in refused:
            return
        places = Places.of(model)
        rewritten(places, "Resize", _products)
        if places.changed:
            yield "resizes are products with constant matrices", places.model


def _products(node: ir.Node, write: Inserter) -> ir.Value | None:
    x, before, after = node.inputs[0], sizes(node.inputs[0]), sizes(node.outputs[0])
    mode = node.attributes.get("coordinate_transformation_mode")
    if x is None or x.dtype != ir.DataType.FLOAT or before is None or after is None or len(before) != len(after):
        return None
    if mode is not None and mode.as_string() == "tf_crop_and_resize":
        return None
    scales = constant(node.inputs[2]) if len(node.inputs) > 2 else None
    rank = len(before)
    for axis in range(rank):
        if before[axis] == after[axis]:
            continue
        if before[axis] * after[axis] > _MOST:
            return None
        scale = float(scales[axis]) if scales is not None and scales.size == rank else None
        matrix = _matrix(node, write.opset, before[axis], after[axis], scale)
        if matrix is None:
            return None
        if axis == rank - 2:
            x = write.op("MatMul", write.constant(matrix, np.float32), x)
            continue
        order = [one for one in range(rank) if one != axis] + [axis]
        last = x if axis == rank - 1 else write.op("Transpose", x, perm=order)
        x = write.op("MatMul", last, write.constant(matrix.T, np.float32))
        if axis != rank - 1:
            x = write.op("Transpose", x, perm=[int(one) for one in np.argsort(order)])
    return x if write.made else None


def _matrix(node: ir.Node, opset: int, size: int, wanted: int, scale: float | None) -> np.ndarray | None:
    """Returns the node's result on the unit vectors of one axis: [wanted, size]."""
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1, 1, size, size]))
    y = ir.Value(name="y", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([1, 1, size, wanted]))
    by = np.array([1, 1, 1, scale], np.float32) if scale is not None else np.array([1, 1, size, wanted], np.int64)
    held = ir.Value(name="by", const_value=ir.tensor(by, name="by"))
    given = [x, None, held] if scale is not None else [x, None, None, held]
    kept = [one for name, one in node.attributes.items() if name not in ("axes", "keep_aspect_ratio_policy")]
    alone = ir.Node("", "Resize", given, kept, outputs=[y])
    graph = ir.Graph([x], [y], nodes=[alone], initializers=[held], opset_imports={"": opset}, name="resize")
    model = ir.Model(graph, ir_version=8)
    try:
        with runtimes.get(runtimes.default()).prepare(model) as session:
            made = np.asarray(session.run({"x": np.eye(size, dtype=np.float32)[None, None]})["y"])
    except OnnxsmithError:
        return None
    return np.ascontiguousarray(made[0, 0].T) if made.shape == (1, 1, size, wanted) else None
