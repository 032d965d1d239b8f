"""Writes the message of a model without its large weights, for onnx's own checks and inference.

They read the values of sizes, axes and scalars, and only the dtypes and shapes of weights."""

from __future__ import annotations

import onnx
import onnx_ir as ir

from onnxsmith.graph.files.external import in_memory
from onnxsmith.graph.structure import carried_fields, model_message

Message = onnx.ModelProto
_LARGEST = 1024
"""The most bytes of an initializer whose values stay in the message. A choice: sizes are short lists."""


def light_message(model: ir.Model) -> onnx.ModelProto:
    """Returns the message of `model`, in which large initializers are inputs. External data is read into it, because
    onnx looks for it in the current folder. A model with parts that onnx-ir cannot hold keeps all its weights. `model`
    is not changed, and its graphs are not copied. Documentation and metadata of nodes are left out."""
    if carried_fields.is_odd(model):
        return carried_fields.to_proto(in_memory(model))
    model = in_memory(model, up_to=_LARGEST)
    graph = model.graph
    small, large = [], []
    for value in graph.initializers.values():
        if value.const_value is not None and value.const_value.nbytes <= _LARGEST:
            small.append(value)
        elif not value.is_graph_input():
            large.append(_declared(value))
    view = ir.GraphView(
        [*graph.inputs, *large],
        graph.outputs,
        nodes=graph,
        initializers=small,
        opset_imports=graph.opset_imports,
        name=graph.name,
    )
    functions = list(model.functions.values())
    whole = ir.Model(view, ir_version=model.ir_version, functions=functions)  # type: ignore[arg-type]
    message = model_message.of_model(whole)
    for node in message.graph.node:  # torch writes a stack trace to each node
        del node.metadata_props[:]
        node.ClearField("doc_string")
    return message


def _declared(value: ir.Value) -> ir.Value:
    """Returns a value that declares the dtype and shape of an initializer."""
    tensor = value.const_value
    if tensor is None or (value.shape is not None and value.dtype is not None):
        return value
    return ir.Value(name=value.name, shape=ir.Shape(tensor.shape.numpy()), type=ir.TensorType(tensor.dtype))
