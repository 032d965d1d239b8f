"""Copies a model without copying its weights. A change to the copy does not change the original."""

from __future__ import annotations

import copy

import onnx
import onnx_ir as ir

from onnxsmith.base.garbage_collection import no_collection
from onnxsmith.graph.structure import walk

SMALL = 1024
"""Limits the bytes of tensor messages that are copied. A choice: copying them is cheaper than a lazy tensor."""


def cloned(model: ir.Model) -> ir.Model:
    """Returns a copy with its own graphs, nodes and tensor names; the values of tensors are shared.

    A plain `clone` shares the tensor objects, too. Renaming a value renames its tensor, so it would change both models.
    """
    with no_collection():
        made = model.clone()
        own_values(made)
    return made


def own_values(model: ir.Model, *, up_to: int = SMALL) -> None:
    """Gives every tensor of `model` its own object. Tensor messages of at most `up_to` bytes are copied, so that they
    do not keep the whole model message in memory."""
    for graph in walk.graphs(model):
        for value in graph.initializers.values():
            if value.const_value is not None:
                value.const_value = _own(value.const_value, up_to)
    for node in walk.all_nodes(model):
        for name, attribute in list(node.attributes.items()):
            if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
                node.attributes[name] = ir.AttrTensor(name, _own(attribute.as_tensor(), up_to), attribute.doc_string)


def _own(tensor: ir.TensorProtocol, up_to: int) -> ir.TensorProtocol:
    """Returns the tensor as an object with its own name. A tensor that wraps a message stores its name in the message:
    small messages are copied, large ones get a lazy tensor in front."""
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
