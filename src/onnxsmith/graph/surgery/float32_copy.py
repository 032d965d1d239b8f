"""Makes a copy of a model that computes in float32 instead of float64; its inputs and outputs stay float64."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.graph.surgery.float64_copy import retyped

_FLOAT, _DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE
_CASTS = 6
"""Is the first opset whose Cast names a dtype by a number."""


def is_double(model: ir.Model) -> bool:
    """Whether the model computes in float64: it holds more bytes of float64 than of float32."""
    sizes = {dtype: sum(one.nbytes for one in walk.tensors(model) if one.dtype == dtype) for dtype in (_FLOAT, _DOUBLE)}
    return sizes[_DOUBLE] > sizes[_FLOAT]


def single(model: ir.Model) -> ir.Model | None:
    """Returns the copy, with a Cast behind each float64 input and before each float64 output; None if the model's opset
    is too old for these Casts, or if the model has operators of other domains, whose dtypes are unknown."""
    if opset_conversion.of(model) < _CASTS or any(node.domain not in ("", "ai.onnx") for node in walk.all_nodes(model)):
        return None
    made = retyped(model, _DOUBLE, _FLOAT)
    names = Names(made)
    for given, value in zip(model.graph.inputs, list(made.graph.inputs), strict=True):
        if given.dtype == _DOUBLE:
            _cast_input(made.graph, value, names)
    for index, (given, value) in enumerate(zip(model.graph.outputs, list(made.graph.outputs), strict=True)):
        if given.dtype == _DOUBLE:
            made.graph.outputs[index] = _cast_output(made.graph, value, names)
    return made


def _cast_input(graph: ir.Graph, value: ir.Value, names: Names) -> None:
    """Replaces the input `value` by a float64 input and a Cast."""
    port = ir.Value(name=value.name, type=ir.TensorType(_DOUBLE), shape=value.shape)
    value.name = names.free(f"{port.name}_float")
    graph.inputs[graph.inputs.index(value)] = port
    node = ir.Node("", "Cast", [port], [ir.AttrInt64("to", _FLOAT.value)], name=f"{port.name}_to_float32")
    result = node.outputs[0]
    result.type, result.shape = ir.TensorType(_FLOAT), value.shape
    value.replace_all_uses_with(result, replace_graph_outputs=True)
    result.name = value.name
    first = next(iter(graph), None)
    if first is None:
        graph.append(node)
    else:
        graph.insert_before(first, node)


def _cast_output(graph: ir.Graph, value: ir.Value, names: Names) -> ir.Value:
    """Appends a Cast of `value` to float64; returns its result, which takes over the name of `value`."""
    port = ir.Value(name=value.name, type=ir.TensorType(_DOUBLE), shape=value.shape)
    value.name = names.free(f"{port.name}_float")
    graph.append(
        ir.Node(
            "", "Cast", [value], [ir.AttrInt64("to", _DOUBLE.value)], outputs=[port], name=f"{port.name}_to_float64"
        )
    )
    return port
