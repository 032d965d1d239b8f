"""Converts models to and from ONNX text, the notation of the specification, in which tests and rules are written."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.files.external import in_memory
from onnxsmith.graph.files.load import from_proto, parse_text
from onnxsmith.graph.structure import carried_fields, name_validation


def to_text(model: ir.Model, *, weights: bool = False) -> str:
    """Returns the model as ONNX text. Without `weights`, leaves out initializers, which can be gigabytes long."""
    proto = ir.to_proto(in_memory(model)) if weights else carried_fields.to_proto(model)
    if not weights:
        del proto.graph.initializer[:]
        del proto.graph.sparse_initializer[:]
    for attribute in (attribute for node in name_validation.all_nodes(proto) for attribute in node.attribute):
        if attribute.type == onnx.AttributeProto.STRING:  # other domains keep compiled code in such attributes
            attribute.s = attribute.s.decode(errors="backslashreplace").encode()
    return str(onnx.printer.to_text(proto))


def from_text(text: str) -> ir.Model:
    """Returns the model that ONNX text describes.

    Raises:
        OnnxsmithError: `model/text-syntax` when the text does not parse, or another `model/…` problem of its graph.
    """
    where = "the given text"
    return from_proto(parse_text(text, where=where), where=where)


def attributes_from_text(texts: Sequence[str], where: str) -> list[dict[str, ir.Attr]]:
    """Returns the attributes in ONNX text, as it stands between angle brackets: `axis = 1, mode = "linear"`.

    Raises: OnnxsmithError: `model/text-syntax`.
    """
    body = "\n".join(f"a{index} = Of <{text}> ()" if text else f"a{index} = Of ()" for index, text in enumerate(texts))
    proto = parse_text(f'<ir_version: 8, opset_import: ["": 17]> g () => () {{\n{body}\n}}', where=where)
    if len(proto.graph.node) != len(texts):
        raise problem("model/text-syntax", "an attribute is not closed", where=where, fix="write NAME = VALUE")
    return [{one.name: ir.serde.deserialize_attribute(one) for one in node.attribute} for node in proto.graph.node]
