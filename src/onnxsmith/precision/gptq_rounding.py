"""Rounds the weights of layers to 8 bits by GPTQ: later columns compensate for the errors of earlier columns.

`gptq_blocks` has the rounding. The second moments of each layer's input are measured in the graph. On inputs with
correlated elements, such as the pixels of a picture, the error of a layer's result is several times smaller than with
each weight rounded to the nearest step.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.precision.data.base import Sample
from onnxsmith.precision.gptq_blocks import inverse_factor, rounded_in_turn
from onnxsmith.precision.ranges import behind
from onnxsmith.runtimes.base import Options, Runtime

Array = npt.NDArray[Any]
_MOST = 1152
"""The most columns of a layer: those of a convolution of 128 channels with a kernel of 3 by 3. A choice: the second
moments take 10 MB in float64, and each sample sends half of that."""
_MOST_BYTES = 2**29
"""The most bytes of second moments held for all layers. A choice: half a GiB; further layers are rounded to the nearest
step."""
_MATRIX = 2
_STEPS = 127


def columns(node: ir.Node) -> int:
    """Returns how many input elements each output of a layer is computed from; 0 for an operator that is not
    handled."""
    weight = node.inputs[1] if len(node.inputs) > 1 else None
    if node.domain or weight is None or weight.const_value is None:
        return 0
    shape = tuple(weight.const_value.shape.numpy())
    if node.op_type == "Conv" and _number(node, "group", 1) == 1:
        return math.prod(shape[1:])
    if node.op_type in ("MatMul", "Gemm") and len(shape) == _MATRIX and not _number(node, "transA", 0):
        return shape[1] if _is_turned(node) else shape[0]
    return 0


def rows(node: ir.Node, weight: Array) -> Array:
    """Returns the weight as a matrix with a row for each output."""
    if node.op_type == "Conv":
        return weight.reshape(len(weight), -1)
    return weight if _is_turned(node) else weight.T


def as_weight(node: ir.Node, matrix: Array, shape: tuple[int, ...]) -> Array:
    """Returns the matrix in the layout of the weight: the reverse of `rows`."""
    turned = matrix if node.op_type == "Conv" or _is_turned(node) else matrix.T
    return np.ascontiguousarray(turned.reshape(shape))


def rounded(
    model: ir.Model, runtime: Runtime, samples: Iterable[Sample], nodes: Sequence[str]
) -> dict[str, tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]]:
    """Returns the weights of these nodes in 8 bits and a scale for each output, by node. Leaves out nodes that are no
    product, that have too many columns, or whose second moments have no inverse.

    Raises:
        OnnxsmithError: the runtime's error for an input that it refuses.
    """
    moments = second_moments(model, runtime, samples, nodes)
    found = {}
    for node in model.graph:
        weight = node.inputs[1] if node.name in moments else None
        if weight is None or weight.const_value is None:
            continue
        array = weight.const_value.numpy()
        factor = inverse_factor(moments[node.name or ""])
        if factor is not None:
            narrow, scale = in_eight_bits(rows(node, array), factor)
            found[node.name or ""] = as_weight(node, narrow, array.shape), scale
    return found


def second_moments(
    model: ir.Model, runtime: Runtime, samples: Iterable[Sample], nodes: Sequence[str]
) -> dict[str, npt.NDArray[np.float64]]:
    """Returns, by node name, the sum of x·xᵀ over all x that the layer reads: `[columns, columns]`. Leaves out layers
    with too many columns.

    The products are computed inside the model, because the x of a convolution are patches, together many times larger
    than its input. `Moments` in `moments.py` reads whole tensors and multiplies them outside the model.

    Raises:
        OnnxsmithError: the runtime's error for an input that it refuses.
    """
    made = cloned(model)
    names = Names(made)
    outputs: dict[str, ir.Value] = {}
    held = 0
    for node in list(made.graph):
        count = columns(node) if node.name in nodes else 0
        if 0 < count <= _MOST and held + 8 * count**2 <= _MOST_BYTES:
            held += 8 * count**2
            outputs[node.name or ""] = _moments(made.graph, node, names)
    if not outputs:
        return {}
    made.graph.outputs.clear()
    made.graph.outputs.extend(outputs.values())
    found: dict[str, Any] = dict.fromkeys(outputs, 0.0)
    with runtime.prepare(made, Options(in_order=True)) as session:
        for sample in samples:
            values = session.run(dict(sample.feeds))
            for name, value in outputs.items():
                found[name] = found[name] + np.asarray(values[value.name or ""], np.float64)
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}


def _moments(graph: ir.Graph, node: ir.Node, names: Names) -> ir.Value:
    """Inserts nodes that compute the second moments of a layer's input."""
    source = node.inputs[0]
    assert source is not None
    new: list[ir.Node] = []

    def add(op: str, *inputs: ir.Value, **attributes: Any) -> ir.Value:
        made = ir.node(op, inputs, attributes=attributes)
        made.outputs[0].name = names.free(f"{node.name}_{op}")
        new.append(made)
        return made.outputs[0]

    def constant(array: Array) -> ir.Value:
        name = names.free(f"{node.name}_constant")
        made = ir.Value(name=name, const_value=ir.tensor(array, name=name))
        graph.initializers[name] = made
        return made

    count = columns(node)
    if node.op_type == "Conv":
        assert node.inputs[1] is not None
        assert node.inputs[1].const_value is not None
        _, channels, *kernel = node.inputs[1].const_value.shape.numpy()
        places = math.prod(kernel)
        # An identity kernel copies each element of a patch into a channel of its own.
        each = np.eye(places, dtype=np.float32).reshape(places, 1, *kernel)
        kept = {name: one.value for name, one in node.attributes.items() if name != "group"}
        parts = add("Conv", source, constant(np.tile(each, (channels, *(1 for _ in each.shape[1:])))),
                    group=channels, **kept)  # fmt: skip
        flat = add("Reshape", parts, constant(np.array([0, count, -1])))
        across = add("Reshape", add("Transpose", flat, perm=[1, 0, 2]), constant(np.array([count, -1])))
    else:
        across = add("Transpose", add("Reshape", source, constant(np.array([-1, count]))), perm=[1, 0])
    result = add("MatMul", across, add("Transpose", across, perm=[1, 0]))
    result.type, result.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([count, count])
    behind(graph, source, new)
    return result


def in_eight_bits(matrix: Array, factor: Array) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Rounds a matrix with a row for each output to 8 bits, and returns it with the scale of each row. `factor` is the
    `inverse_factor` of the second moments of its inputs."""
    left = np.ascontiguousarray(matrix.astype(np.float64).T)
    peak = np.abs(left).max(axis=0)
    scale = np.where(peak > 0, peak / _STEPS, 1).astype(np.float32)
    narrow = rounded_in_turn(left, factor, (0, len(left)), scale, (-_STEPS, _STEPS))
    return np.ascontiguousarray(narrow.T.astype(np.int8)), scale


def _is_turned(node: ir.Node) -> bool:
    return node.op_type == "Gemm" and bool(_number(node, "transB", 0))


def _number(node: ir.Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return default if attribute is None else attribute.as_int()
