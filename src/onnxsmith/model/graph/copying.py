"""Copies a model so that nothing done to the copy is seen in the original, without copying a weight."""

from __future__ import annotations

import copy

import onnx
import onnx_ir as ir

from onnxsmith.model.graph import walk

_SMALL = 1024
"""Bytes up to which a tensor message is copied outright."""


def cloned(model: ir.Model) -> ir.Model:
    """A copy whose graphs, nodes and tensor names are its own; the values of tensors are shared.

    A plain clone shares the tensor objects too, and these carry a name that follows whoever renames a value.
    """
    made = model.clone()
    own_values(made)
    return made


def own_values(model: ir.Model, *, up_to: int = _SMALL) -> None:
    """Gives every tensor an object of its own. What is in messages of no more bytes than `up_to` no longer holds on to
    the whole that they came in."""
    for graph in walk.graphs(model):
        for value in graph.initializers.values():
            if value.const_value is not None:
                value.const_value = _own(value.const_value, up_to)
    for node in walk.all_nodes(model):
        for name, attribute in list(node.attributes.items()):
            if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
                node.attributes[name] = ir.AttrTensor(name, _own(attribute.as_tensor(), up_to), attribute.doc_string)


def _own(tensor: ir.TensorProtocol, up_to: int) -> ir.TensorProtocol:
    """The tensor under a name of its own. One that wraps a message keeps its name inside the message: a large one is
    reached through a lazy tensor instead of being copied."""
    if not isinstance(tensor, ir.serde.TensorProtoTensor):
        return copy.copy(tensor)
    if tensor.nbytes <= up_to:
        message = onnx.TensorProto()
        message.CopyFrom(tensor.raw)
        own = ir.serde.TensorProtoTensor(message)
        own.metadata_props.update(tensor.metadata_props)  # loading took them out of the message
        return own
    return ir.LazyTensor(
        lambda: tensor,
        dtype=tensor.dtype,
        shape=tensor.shape,
        name=tensor.name,
        doc_string=tensor.doc_string,
        metadata_props=dict(tensor.metadata_props),
    )
