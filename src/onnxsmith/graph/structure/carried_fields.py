"""Preserves the parts of the format that onnx-ir cannot hold: keeps them beside the graph and writes them back.

Sparse tensors become dense tensors that remember their message (`sparse.py`). A value whose type onnx-ir lacks (a map,
an opaque type) has no type in the graph and keeps its declaration here. Training information, and device configurations
without a name, are dropped: no run needs them, and a change to the graph could make them wrong. `left_out` names these
parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnx_ir as ir

from onnxsmith.base.seams.metadata import meta
from onnxsmith.graph.structure import model_message, name_validation, sparse, walk

_TYPE = "onnxsmith.type"
"""Is the key of a value's `meta` that holds the type declaration that onnx-ir cannot hold."""
_PLACE = "onnxsmith.place"
"""Is the metadata key of a placeholder while onnx-ir reads or writes. It holds the number of the carried part."""
_LEFT_OUT = "onnxsmith.left_out"
"""Is the key of the graph's `meta` that holds names of the dropped parts."""


def odd_type(value: ir.Value) -> onnx.TypeProto | None:
    """Returns the declared type of a value if onnx-ir cannot hold it: a map, a list of maps, an opaque type."""
    found: onnx.TypeProto | None = meta(value).get(_TYPE)
    return found


def map_types(value: ir.Value) -> tuple[str, str, bool] | None:
    """Returns the dtypes of a map's keys and values in lower case, and whether the value is a list of maps. None for
    other types."""
    declared = odd_type(value)
    is_list = declared is not None and declared.WhichOneof("value") == "sequence_type"
    if declared is not None and is_list:
        declared = declared.sequence_type.elem_type
    if declared is None or declared.WhichOneof("value") != "map_type":
        return None
    name = onnx.TensorProto.DataType.Name
    held = declared.map_type.value_type.tensor_type.elem_type
    return name(declared.map_type.key_type).lower(), name(held).lower(), is_list


def left_out(model: ir.Model) -> tuple[str, ...]:
    """Returns the names of the dropped parts, which no run needs."""
    found: tuple[str, ...] = model.graph.meta.get(_LEFT_OUT, ())
    return found


def is_odd(model: ir.Model) -> bool:
    """Whether the model has carried parts. onnx-ir alone would not write them."""
    has_sparse = any(sparse.message_of(tensor) is not None for tensor in walk.tensors(model))
    return has_sparse or any(value.type is None and _TYPE in meta(value) for value in _values(model))


def from_proto(proto: onnx.ModelProto, kinds: name_validation.Kinds) -> ir.Model:
    """Makes a model from a message, which belongs to the model from then on. `kinds` says what its nodes hold."""
    gone = list(_dropped(proto, kinds))
    sparse_parts, types = _take_sparse(proto) if kinds.sparse else [], _take_types(proto)
    model = ir.from_proto(proto)
    if gone:
        model.graph.meta[_LEFT_OUT] = tuple(dict.fromkeys(gone))
    if sparse_parts:
        _restore_sparse(model, sparse_parts)
    if types:
        for value in _values(model):
            place = value.metadata_props.pop(_PLACE, None)
            if place is not None:
                value.meta[_TYPE] = types[int(place)]
    return model


def to_proto(model: ir.Model) -> onnx.ModelProto:
    """Makes the message of a model, including the carried parts."""
    if not is_odd(model):
        return _plain(model)
    copy = model.clone()
    parts: list[onnx.SparseTensorProto] = []
    for value in walk.initializers(copy):
        value.const_value = _placeholder(value.const_value, parts)
    for node in walk.all_nodes(copy):
        if _is_constant(node):
            held = node.attributes["value"].as_tensor()
            node.attributes["value"] = ir.AttrTensor("value", _placeholder(held, parts) or held)
    types: list[onnx.TypeProto] = []
    for value in _values(copy):
        declared = odd_type(value)
        if declared is not None:
            value.metadata_props[_PLACE] = str(len(types))
            types.append(declared)
    proto = _plain(copy)
    _write_sparse(proto, parts)
    for info in _declarations(proto):
        place = _take_place(info)
        if place is not None:
            info.type.CopyFrom(types[place])
    return proto


def _plain(model: ir.Model) -> onnx.ModelProto:
    """Makes the message without carried parts. Hides shapes of untyped values: the format has no place for them, and
    onnx-ir would warn about each."""
    values = (*_values(model), *walk.initializers(model))
    untyped = [(value, value.shape) for value in values if value.type is None and value.shape is not None]
    for value, _ in untyped:
        value.shape = None
    try:
        return model_message.of_model(model)
    finally:
        for value, shape in untyped:
            value.shape = shape


def _dropped(proto: onnx.ModelProto, kinds: name_validation.Kinds) -> Iterator[str]:
    """Removes the parts that no run needs, and yields their names."""
    if proto.training_info:
        del proto.training_info[:]
        yield "training information"
    for node in name_validation.all_nodes(proto) if kinds.devices else ():
        held = [one for one in node.device_configurations if _is_named(one)]
        if len(held) != len(node.device_configurations):
            del node.device_configurations[:]
            node.device_configurations.extend(held)
            yield "a device configuration without a name"


def _is_named(device: onnx.NodeDeviceConfigurationProto) -> bool:
    return bool(device.configuration_id) and all(spec.tensor_name for spec in device.sharding_spec)


def _take_sparse(proto: onnx.ModelProto) -> list[onnx.SparseTensorProto]:
    """Replaces sparse tensors by empty placeholders; returns the sparse tensors."""
    parts: list[onnx.SparseTensorProto] = []
    for graph in name_validation.all_graphs(proto):
        for message in graph.sparse_initializer:
            _fill(graph.initializer.add(), message, parts)
        del graph.sparse_initializer[:]
    for node in name_validation.all_nodes(proto):
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.SPARSE_TENSOR and not attribute.ref_attr_name:
                message = onnx.SparseTensorProto()
                message.CopyFrom(attribute.sparse_tensor)
                attribute.ClearField("sparse_tensor")
                attribute.name, attribute.type = "value", onnx.AttributeProto.TENSOR
                _fill(attribute.t, message, parts)
    return parts


def _fill(tensor: onnx.TensorProto, message: onnx.SparseTensorProto, parts: list[onnx.SparseTensorProto]) -> None:
    own = onnx.SparseTensorProto()
    own.CopyFrom(message)
    tensor.name, tensor.data_type = message.values.name, message.values.data_type
    tensor.dims.extend(message.dims)
    tensor.metadata_props.add(key=_PLACE, value=str(len(parts)))
    parts.append(own)


def _restore_sparse(model: ir.Model, parts: list[onnx.SparseTensorProto]) -> None:
    for value in walk.initializers(model):
        place = value.const_value.metadata_props.get(_PLACE) if value.const_value is not None else None
        if place is not None:
            value.const_value = sparse.dense(parts[int(place)])
    for node in walk.all_nodes(model):
        for name, attribute in node.attributes.items():
            if attribute.type == ir.AttributeType.TENSOR and not attribute.is_ref():
                place = attribute.as_tensor().metadata_props.get(_PLACE)
                if place is not None:
                    node.attributes[name] = ir.AttrTensor(name, sparse.dense(parts[int(place)]))


def _is_constant(node: ir.Node) -> bool:
    held = node.attributes.get("value") if node.op_type == "Constant" and not node.domain else None
    return held is not None and not held.is_ref() and sparse.message_of(held.as_tensor()) is not None


def _placeholder(tensor: ir.TensorProtocol | None, parts: list[onnx.SparseTensorProto]) -> ir.TensorProtocol | None:
    message = sparse.message_of(tensor)
    if message is None:
        return tensor
    parts.append(message)
    return ir.Tensor(np.zeros(0, np.float32), metadata_props={_PLACE: str(len(parts) - 1)})


def _write_sparse(proto: onnx.ModelProto, parts: list[onnx.SparseTensorProto]) -> None:
    for graph in name_validation.all_graphs(proto):
        for index in reversed(range(len(graph.initializer))):
            place = _take_place(graph.initializer[index])
            if place is not None:
                made = graph.sparse_initializer.add()
                made.CopyFrom(parts[place])
                made.values.name = graph.initializer[index].name
                del graph.initializer[index]
    for node in name_validation.all_nodes(proto):
        for attribute in node.attribute:
            place = _take_place(attribute.t) if attribute.type == onnx.AttributeProto.TENSOR else None
            if place is not None:
                attribute.ClearField("t")
                attribute.name, attribute.type = "sparse_value", onnx.AttributeProto.SPARSE_TENSOR
                attribute.sparse_tensor.CopyFrom(parts[place])


def _take_types(proto: onnx.ModelProto) -> list[onnx.TypeProto]:
    """Removes the types that onnx-ir cannot hold, and returns them."""
    types: list[onnx.TypeProto] = []
    for info in _declarations(proto):
        if not _is_known(info.type):
            kept = onnx.TypeProto()
            kept.CopyFrom(info.type)
            info.ClearField("type")
            info.metadata_props.add(key=_PLACE, value=str(len(types)))
            types.append(kept)
    return types


def _is_known(type_: onnx.TypeProto) -> bool:
    match type_.WhichOneof("value"):
        case "sequence_type":
            return type_.sequence_type.elem_type.WhichOneof("value") is not None and _is_known(
                type_.sequence_type.elem_type
            )
        case "optional_type":
            return type_.optional_type.elem_type.WhichOneof("value") is not None and _is_known(
                type_.optional_type.elem_type
            )
        case "map_type" | "opaque_type":
            return False
    return True


def _declarations(proto: onnx.ModelProto) -> Iterator[onnx.ValueInfoProto]:
    for graph in name_validation.all_graphs(proto):
        yield from graph.input
        yield from graph.output
        yield from graph.value_info
    for function in proto.functions:
        yield from function.value_info


def _take_place(message: onnx.TensorProto | onnx.ValueInfoProto) -> int | None:
    """Returns the number of the carried part that the message is a placeholder of, and removes the mark."""
    for index, entry in enumerate(message.metadata_props):
        if entry.key == _PLACE:
            place = int(entry.value)
            del message.metadata_props[index]
            return place
    return None


def _values(model: ir.Model) -> Iterator[ir.Value]:
    """Yields inputs, outputs and results of nodes; may yield a value several times."""
    for graph in walk.graphs(model):
        yield from graph.inputs
        yield from graph.outputs
    for node in walk.all_nodes(model):
        yield from node.outputs


def is_plain(type_: onnx.TypeProto) -> bool:
    """Whether onnx-ir can hold the type: not a map or an opaque type, nor a list of them."""
    return _is_known(type_)


def declare(value: ir.Value, type_: onnx.TypeProto) -> None:
    """Declares a type that onnx-ir cannot hold."""
    value.meta[_TYPE] = type_
