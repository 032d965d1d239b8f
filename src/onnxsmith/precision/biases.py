"""Gives each Gemm a bias that quantisers accept: a vector with one number for each output channel, and no `beta`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names

_BIAS = 2
"""The index of the bias among the inputs of Gemm."""


def straighten(model: ir.Model) -> None:
    """Rewrites the constant biases of Gemm in all graphs, in place.

    1. `beta` is multiplied into the bias, because onnxruntime's quantiser ignores `beta`.
    2. A bias of shape [], [1], [1, 1] or [1, N] becomes [N], because quantisers divide it by the N scales of the
       weight.
    3. A bias with a number for each row, [M, 1] or [M, N], is added by an Add after the Gemm.

    A bias that is computed, or is also a graph input, stays as it is: quantisers leave it in float.
    """
    names = Names(model)
    for node in list(walk.nodes(model.graph)):
        bias = node.inputs[_BIAS] if node.op_type == "Gemm" and not node.domain and len(node.inputs) > _BIAS else None
        if bias is None or bias.const_value is None or bias.is_graph_input():
            continue
        given = bias.const_value.numpy()
        beta = node.attributes.get_float("beta", 1.0)
        array = given if beta == 1 else (given * np.asarray(beta, given.dtype)).astype(given.dtype)
        is_vector = all(size == 1 for size in array.shape[:-1])
        if is_vector:
            wanted = _columns(node) if array.size == 1 else None
            array = np.ascontiguousarray(np.broadcast_to(array.reshape(-1), (wanted or array.size,)))
        if beta != 1 or array.shape != given.shape:
            node.attributes.pop("beta", None)
            node.replace_input_with(_BIAS, _initializer(node, names.free(f"{bias.name}_vector"), array))
            _drop(bias)
        if not is_vector:
            _behind(node, names)


def _drop(value: ir.Value) -> None:
    """Removes an initializer that nothing reads any more."""
    if not value.uses() and not value.is_graph_output() and isinstance(value.graph, ir.Graph):
        value.graph.initializers.pop(value.name or "", None)


def _columns(node: ir.Node) -> int | None:
    """Returns the number of output channels; None if it is unknown."""
    weight = node.inputs[1]
    if weight is None or weight.shape is None or len(weight.shape) != 2:
        return None
    size = weight.shape[0 if node.attributes.get_int("transB", 0) else 1]
    return size if isinstance(size, int) else None


def _initializer(node: ir.Node, name: str, array: npt.NDArray[Any]) -> ir.Value:
    assert isinstance(node.graph, ir.Graph)
    tensor = ir.tensor(array, name=name)
    made = ir.Value(name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape))
    node.graph.initializers[name] = made
    return made


def _behind(node: ir.Node, names: Names) -> None:
    """Moves the bias of a Gemm into an Add after it. The Add's output takes over the name of the Gemm's output."""
    assert isinstance(node.graph, ir.Graph)
    bias = node.inputs[_BIAS]
    node.resize_inputs(_BIAS)
    result = node.outputs[0]
    add = ir.Node("", "Add", [result, bias], name=names.free(f"{node.name}_bias") if node.name else None)
    added = add.outputs[0]
    added.type, added.shape = result.type, result.shape
    node.graph.insert_after(node, add)
    for use in list(result.uses()):
        if use.node is not add:
            use.node.replace_input_with(use.idx, added)
    for index, output in enumerate(node.graph.outputs):
        if output is result:
            node.graph.outputs[index] = added
    name = result.name
    result.name = names.free(f"{name}_product")
    added.name = name
