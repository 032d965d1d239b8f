"""Refuses texts in a model's messages that are not UTF-8. protobuf returns such texts as bytes, which fail later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx
import onnx_ir as ir
from google.protobuf.message import Message

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.structure import walk

_TENSORS = {"t", "tensors", "initializer", "sparse_tensor", "sparse_initializer", "training_info"}
"""Lists fields whose texts are not checked here: they hold tensors, which `tensor_validation.check` checks, or are
never read."""


def check_metadata(model: ir.Model, where: str) -> None:
    """Raises if a text in the metadata of a node is not UTF-8. Checks the loaded model, not the message, for speed:
    there the metadata of a node is one dictionary, and it is most of the text of a large file."""
    for node in walk.all_nodes(model):
        props = node.metadata_props
        try:
            "".join(props)
            "".join(props.values())
        except TypeError:
            held: Iterable[object] = (text for item in props.items() for text in item)
            bad = next(text for text in held if isinstance(text, bytes))
            raise _bad(bad, "NodeProto", where) from None


def _bad(text: bytes, message: str, where: str) -> OnnxsmithError:
    return problem(
        "model/invalid",
        f"a text in a {message} is not UTF-8",
        where=where,
        why=f"it is {text[:60]!r}",
        fix="the file is damaged, or its writer is wrong: copy or export it again",
    )


def refuse_bad(message: Message, where: str) -> None:
    """Raises if a string is not UTF-8. protobuf returns such a string as bytes, which fail later when joined with text.

    Tensors are checked in `tensor_validation.check`, because `ListFields` would copy their values.
    """
    texts: list[object] = []
    inner: list[Message] = []
    is_node = isinstance(message, onnx.NodeProto)
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            texts += [value] if isinstance(value, str | bytes) else value
        elif field.type != field.TYPE_MESSAGE or field.name in _TENSORS:
            continue
        elif field.message_type.name == "StringStringEntryProto":
            if is_node:
                continue  # `check_metadata` reads it
            texts += (text for entry in value for text in (entry.key, entry.value))
        elif field.message_type.name == "AttributeProto":
            texts += (text for a in value for text in (a.name, a.doc_string, a.ref_attr_name))
            inner += (graph for a in value for graph in (*a.graphs, *([a.g] if a.HasField("g") else [])))
        elif field.message_type.name == "TypeProto":
            texts += _texts_of_type(value)
        else:
            inner += [value] if isinstance(value, Message) else value
    for text in texts:
        if isinstance(text, bytes):
            raise _bad(text, message.DESCRIPTOR.name, where)
    for part in inner:
        if not (isinstance(part, onnx.NodeProto) and _is_text(part)):
            refuse_bad(part, where)


def _is_text(node: onnx.NodeProto) -> bool:
    """Whether all texts of a node without subgraphs are UTF-8. Joins them in one call, for speed: most of a model is
    nodes."""
    texts = [*node.input, *node.output, node.op_type, node.name, node.domain, node.overload, node.doc_string]
    for attribute in node.attribute:
        if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
            return False
        texts += (attribute.name, attribute.doc_string, attribute.ref_attr_name)
    try:
        "".join(texts)
    except TypeError:
        return False
    return not node.device_configurations


def _texts_of_type(type_: onnx.TypeProto) -> Iterator[str]:
    """Yields the texts of a type. Names its fields, for speed: a model has many types with little text."""
    yield type_.denotation
    match type_.WhichOneof("value"):
        case "sequence_type":
            yield from _texts_of_type(type_.sequence_type.elem_type)
        case "optional_type":
            yield from _texts_of_type(type_.optional_type.elem_type)
        case "tensor_type" | "sparse_tensor_type" as kind:
            for dim in getattr(type_, kind).shape.dim:
                yield dim.denotation
                yield dim.dim_param
