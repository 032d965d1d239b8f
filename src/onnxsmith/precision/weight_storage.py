"""Stores float32 constants in 8 bits, symmetric, with a scale for each channel or row. Nodes turn them into floats
again.

Activations stay floats, so that only weights are rounded. There are two forms:

1. A Cast and a Mul after the stored constant. A runtime that folds constants when it loads a model, as onnxruntime
   does, runs this form as fast as float32. Weights of recurrent layers get two Casts, through int32. OpenVINO treats a
   single Cast with a Mul as a quantised weight and does not fold it, but its recurrent layers accept only constants
   (2026.4: "GRUSequence … expects Constant for port 3").
2. A DequantizeLinear, which onnxruntime does not fold. Before a MatMul, onnxruntime replaces it by a kernel that
   multiplies blocks of 32 elements in 8 bits and rounds activations block by block. TensorRT accepts 8-bit weights only
   in this form.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.precision.forms.base import PRODUCTS, RECURRENT
from onnxsmith.precision.methods._gemm import is_plain, written_out

LEAST = 1024
"""The fewest elements of a constant that is stored in 8 bits. A choice: two nodes and their names take some 300
bytes."""
_ROW = 16
"""The fewest elements that share a scale if a table has a scale for each row. A choice: a scale then costs a quarter of
a byte an element."""
_STEPS = 127
_WEIGHTS = dict.fromkeys((*PRODUCTS, "Add", "Mul", "Sub"), (0, 1)) | dict.fromkeys(RECURRENT, (1, 2))
"""Operators that add or multiply, with the operands for which an error of half a step is harmless."""
MOVING = {
    "Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose",
    "Unsqueeze",
}  # fmt: skip
"""Operators that only move elements: the readers of their results decide."""
_MATRIX = 2


def constants(node: ir.Node) -> list[ir.Value]:
    """Returns the constant operands of a node that can be stored in 8 bits.

    Refused:
    1. Constants of fewer than `LEAST` elements, constants that are not float32, and constants that are graph inputs or
       outputs.
    2. Constants with elements that are not finite.
    3. Constants that, moved or not, reach an operator that does more than add or multiply. For example, comparing
       positions needs exact numbers.
    """
    return [value for index, value in enumerate(node.inputs) if value is not None and _is_storable(node, index, value)]


def _is_storable(node: ir.Node, index: int, value: ir.Value) -> bool:
    tensor = value.const_value
    if tensor is None or value.is_graph_input() or value.is_graph_output() or tensor.dtype != ir.DataType.FLOAT:
        return False
    if (
        tensor.size < LEAST
        or not _computes(node, index)
        or not all(_computes(use.node, use.idx) for use in value.uses())
    ):
        return False
    return bool(np.isfinite(tensor.numpy()).all())


def _computes(node: ir.Node, index: int) -> bool:
    """Whether the operator adds or multiplies the operand, or moves it to operators that do."""
    if node.domain:
        return False
    if index in _WEIGHTS.get(node.op_type, ()):
        return True
    first = index == 0 or node.op_type == "Concat"
    return node.op_type in MOVING and first and all(_computes(use.node, use.idx) for use in node.outputs[0].uses())


def holders(model: ir.Model) -> Iterator[tuple[ir.Node, list[ir.Value]]]:
    """Yields, for all graphs, the nodes that read storable constants. Each constant comes with its first reader."""
    seen: set[ir.Value] = set()
    for node in walk.nodes(model.graph):
        found = [value for value in constants(node) if value not in seen]
        seen.update(found)
        if found:
            yield node, found


Rounded = tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]
"""A constant in 8 bits, and its scale for each index of an axis."""


def store(
    model: ir.Model,
    layers: Collection[str],
    *,
    by_cast: bool,
    for_kernels: bool = True,
    rounded: Mapping[str, Rounded] | None = None,
) -> ir.Model:
    """Returns a model that stores the constants of these nodes in 8 bits; changes the given model too. With `by_cast`
    constants have form 1, else form 2. With `for_kernels` a Gemm becomes a MatMul, and matrices of MatMul always have
    form 2. `rounded` has weights that are rounded already, by the nodes that read them."""
    gemms = [node for node in model.graph if for_kernels and node.name in layers and is_plain(node)]
    plain = [node.name or "" for node in gemms if constants(node)]
    made = written_out(model, only=plain) if plain else model
    names = Names(made)
    for node, values in list(holders(made)):
        if node.name not in layers:
            continue
        for value in values:
            is_matrix = node.op_type == "MatMul" and len(value.uses()) == 1 and _rank(value) == _MATRIX
            given = (rounded or {}).get(node.name or "") if node.inputs[1] is value else None
            _store(value, node, names, given, by_cast=by_cast and not (for_kernels and is_matrix))
    return made


def _rank(value: ir.Value) -> int:
    assert value.const_value is not None
    return len(value.const_value.shape)


def _store(value: ir.Value, node: ir.Node, names: Names, given: Rounded | None, *, by_cast: bool) -> None:
    assert value.const_value is not None
    graph = value.graph if isinstance(value.graph, ir.Graph) else node.graph
    assert isinstance(graph, ir.Graph)
    array = value.const_value.numpy()
    axis = _axis(node, value, array.shape)
    narrow, scale = given or quantised(array, axis)
    shaped = (
        scale.reshape([-1 if at == axis else 1 for at in range(array.ndim)]) if by_cast and axis is not None else scale
    )
    held = _initializer(graph, names.free(f"{value.name}_int8"), narrow)
    step = _initializer(graph, names.free(f"{value.name}_scale"), shaped)
    if by_cast:
        whole = [ir.DataType.INT32] if _is_recurrent(value) else []
        nodes: list[ir.Node] = []
        for dtype in (*whole, ir.DataType.FLOAT):
            nodes.append(ir.Node("", "Cast", [nodes[-1].outputs[0] if nodes else held], [ir.AttrInt64("to", dtype)]))
            nodes[-1].outputs[0].name = names.free(f"{value.name}_{dtype.name.lower()}")
        nodes.append(ir.Node("", "Mul", [nodes[-1].outputs[0], step]))
    else:
        axes = [] if axis is None else [ir.AttrInt64("axis", axis)]
        nodes = [ir.Node("", "DequantizeLinear", [held, step], axes)]
    result = nodes[-1].outputs[0]
    result.name = names.free(f"{value.name}_stored")
    result.type, result.shape = value.type, value.shape
    for use in list(value.uses()):
        use.node.replace_input_with(use.idx, result)
    graph.initializers.pop(value.name or "", None)
    first = next(iter(graph), None)
    if first is None:
        graph.extend(nodes)
    else:
        graph.insert_before(first, nodes)


def _is_recurrent(value: ir.Value) -> bool:
    """Whether a recurrent layer reads the value, moved or not."""
    readers = [use.node for use in value.uses()]
    return any(
        node.op_type in RECURRENT or (node.op_type in MOVING and _is_recurrent(node.outputs[0])) for node in readers
    )


def quantised(array: npt.NDArray[Any], axis: int | None) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Rounds an array to 8 bits, from -127 to 127. Returns it with its scales: one for each index of `axis`, or a
    single number if `axis` is None."""
    rest = tuple(at for at in range(array.ndim) if at != axis)
    peak = np.asarray(np.abs(array).max(axis=rest, keepdims=True))
    scale = np.where(peak > 0, peak / _STEPS, 1).astype(np.float32)
    narrow = np.clip(np.rint(array / scale), -_STEPS, _STEPS).astype(np.int8)
    return narrow, scale.reshape(-1) if axis is not None else scale.reshape(())


def _axis(node: ir.Node, value: ir.Value, shape: tuple[int, ...]) -> int | None:
    """Returns the axis with a scale for each index: the output channels of a product, or the rows of a table. None for
    a single scale."""
    is_weight = len(shape) > 1 and len(node.inputs) > 1 and node.inputs[1] is value
    if is_weight and node.op_type == "Conv":
        return 0
    if is_weight and node.op_type in ("ConvTranspose", *RECURRENT):
        return 1
    if is_weight and node.op_type == "MatMul":
        return len(shape) - 1
    if is_weight and node.op_type == "Gemm":
        return 0 if "transB" in node.attributes and node.attributes["transB"].as_int() else 1
    total = math.prod(shape)
    fine = [at for at, size in enumerate(shape[:-1]) if size > 1 and total >= _ROW * size]
    return max(fine, key=lambda at: shape[at]) if fine else None


def _initializer(graph: ir.Graph, name: str, array: npt.NDArray[Any]) -> ir.Value:
    tensor = ir.tensor(array, name=name)
    made = ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape))
    graph.initializers[name] = made
    return made
