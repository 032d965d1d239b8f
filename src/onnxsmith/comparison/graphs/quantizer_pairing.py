"""Pairs the nodes of a model with those of its quantised form.

In that form QuantizeLinear and DequantizeLinear stand between the other nodes. Both models are copied without these two
operators: their readers read the tensor before them, and a stored tensor of integers becomes the floats that it
represents. Pairs of the copies are pairs of the models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes  # noqa: F401 — numpy knows the narrow dtypes with it
import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.comparison.graphs.pairs import Pairs
from onnxsmith.graph.reading import weights
from onnxsmith.graph.structure.model_copy import cloned

Models = tuple[ir.Model, ir.Model]
Floats = npt.NDArray[np.float32]
_READ = 256 * 2**20
"""How many bytes of integers are turned into floats in one model. A choice: they only help to tell equal layers
apart."""


def pairs_behind(models: Models, pair: Callable[[Models], Pairs]) -> Iterator[tuple[ir.Node, ir.Node]]:
    """Yields pairs of nodes of the main graphs, if the models have different numbers of quantizers. `pair` pairs the
    nodes of two models."""
    counts = [sum(is_quantizer(node) for node in model.graph) for model in models]
    if counts[0] == counts[1]:
        return
    copies = cloned(models[0]), cloned(models[1])
    own = [
        dict(zip(copy.graph, model.graph, strict=True)) for copy, model in zip(copies, models, strict=True)
    ]  # before nodes are removed
    for copy in copies:
        strip(copy.graph)
    for one, other in pair(copies).nodes.items():
        if one in own[0] and other in own[1]:
            yield own[0][one], own[1][other]


def is_quantizer(node: ir.Node) -> bool:
    """Whether the node only changes the precision of a tensor by a scale."""
    return node.op_type in ("QuantizeLinear", "DequantizeLinear") and node.domain in ("", "ai.onnx", "com.microsoft")


def strip(graph: ir.Graph) -> None:
    """Removes DequantizeLinear from a graph, and each QuantizeLinear that is then unread."""
    spent = 0
    for node in list(graph):
        if not is_quantizer(node) or node.op_type != "DequantizeLinear" or node.inputs[0] is None:
            continue
        result, quantised = node.outputs[0], node.inputs[0]
        maker = quantised.producer()
        if result.is_graph_output():
            continue  # removing it would change the name of the output
        if maker is not None and is_quantizer(maker) and maker.inputs[0] is not None:
            result.replace_all_uses_with(maker.inputs[0])
        elif quantised.const_value is not None and weights.readable(quantised.const_value):
            spent += quantised.const_value.nbytes
            result.replace_all_uses_with(_floats(graph, node, read=spent <= _READ))
        else:
            continue
        graph.remove(node, safe=True)
    for node in reversed(list(graph)):
        if is_quantizer(node) and not any(value.uses() or value.is_graph_output() for value in node.outputs):
            graph.remove(node, safe=True)


def _floats(graph: ir.Graph, node: ir.Node, *, read: bool) -> ir.Value:
    """Adds the floats that a DequantizeLinear makes of stored integers. With `read=False` the tensor has no values."""
    result = node.outputs[0]
    stored = node.inputs[0]
    assert stored is not None
    assert stored.const_value is not None
    scale = node.inputs[1].const_value if len(node.inputs) > 1 and node.inputs[1] is not None else None
    dtype = scale.dtype if scale is not None else ir.DataType.FLOAT
    shape = ir.Shape(stored.const_value.shape.numpy())
    value = ir.Value(name=f"{result.name}.floats", type=ir.TensorType(dtype), shape=shape)
    array = dequantised(node) if read else None
    if array is not None and scale is not None:
        value.const_value = ir.tensor(array.astype(scale.numpy().dtype), name=value.name)
    graph.initializers.add(value)
    return value


def dequantised(node: ir.Node) -> Floats | None:
    """Returns the floats that a DequantizeLinear makes of stored integers. None if the integers or a parameter are
    computed, or if the parameters do not fit."""
    held = [None if value is None else value.const_value for value in (*node.inputs, None, None)][:3]
    if held[0] is None or held[1] is None or (held[2] is None and len(node.inputs) > 2 and node.inputs[2] is not None):
        return None
    try:
        array, scale = _as_floats(held[0]), _as_floats(held[1])
        zero = np.zeros((), np.float32) if held[2] is None else _as_floats(held[2])
        axis, block = (
            node.attributes[name].as_int() if name in node.attributes else default
            for name, default in (("axis", 1), ("block_size", 0))
        )
        return (array - _spread(zero, array, axis, block)) * _spread(scale, array, axis, block)
    except (ValueError, OSError, IndexError):
        return None


def _as_floats(tensor: ir.TensorProtocol) -> Floats:
    return np.asarray(tensor.numpy()).astype(np.float32)


def _spread(one: Floats, array: Floats, axis: int, block: int) -> Floats:
    """Returns a scale or zero point in a shape that broadcasts to the elements."""
    if one.size == 1:
        return one.reshape(())
    if block:
        return np.repeat(one, block, axis=axis).take(range(array.shape[axis]), axis=axis)
    shape = [1] * array.ndim
    shape[axis] = -1
    return one.reshape(shape)
