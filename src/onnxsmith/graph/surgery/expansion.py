"""Replaces a node by the body that the ONNX specification gives its operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery import stable_variance
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.graph.surgery.node_insertion import Inserter

_DOMAIN = "onnxsmith.expansion"


def expand(node: ir.Node, version: int, target: int, write: Inserter) -> tuple[list[ir.Node], int] | str:
    """Inserts the body of the node's operator at `version` in front of it, and replaces the node's outputs.

    Returns the new nodes and their opset: the newest up to `target` in which there is a body, else the oldest. Without
    a body, returns the reason as a text.
    """
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, version, "")  # the stubs of onnx lack what follows
    except onnx.defs.SchemaError:
        return f"opset {version} has no such operator"
    if not (schema.has_function or schema.has_context_dependent_function):
        return f"opset {schema.since_version - 1} has no such operator, and the specification has no body for it"
    if any(attribute.is_ref() for attribute in node.attributes.values()):
        return "the attributes of the node refer to attributes of the function"
    unknown = [value.name for value in node.inputs if value is not None and value.type is None]
    if schema.has_context_dependent_function and unknown:
        return f"the dtype of its operand {unknown[0]} is unknown"
    for opset in _opsets(schema, target):
        body = _body(schema, node, opset)
        if body is not None:
            return _inserted(node, schema, body, opset, write), opset
    return "the specification has a body only for other dtypes or attributes"


def _opsets(schema: Any, target: int) -> Iterator[int]:
    known = {*schema.function_opset_versions, *schema.context_dependent_function_opset_versions}
    yield from sorted((one for one in known if one <= target), reverse=True)
    yield from sorted(one for one in known if one > target)


def _body(schema: Any, node: ir.Node, opset: int) -> onnx.FunctionProto | None:
    """Returns the body at an opset, which may depend on `node`'s operands and attributes."""
    text = b""
    if opset in schema.function_opset_versions:
        text = schema.get_function_with_opset_version(opset)
    elif opset in schema.context_dependent_function_opset_versions:
        types = [_type(value) for value in node.inputs]
        bare = ir.Node("", node.op_type, node.inputs, list(node.attributes.values()), num_outputs=len(node.outputs))
        for value, given in zip(bare.outputs, node.outputs, strict=True):
            value.name = given.name
        message = ir.serde.serialize_node(bare).SerializeToString()
        bare.resize_inputs(0)
        try:
            text = schema.get_context_dependent_function_with_opset_version(opset, message, types)
        except RuntimeError:  # the builder refuses operands or attributes
            return None
    function = onnx.FunctionProto()
    function.ParseFromString(text)
    return function if function.node else None


def _type(value: ir.Value | None) -> bytes:
    proto = onnx.TypeProto()
    if value is not None and value.type is not None:
        ir.serde.serialize_type_into(proto, value.type)
        if value.shape is not None:
            ir.serde.serialize_shape_into(proto, value.shape)
    text: bytes = proto.SerializeToString()
    return text


def _inserted(node: ir.Node, schema: Any, body: onnx.FunctionProto, opset: int, write: Inserter) -> list[ir.Node]:
    """Inlines the body in a model of its own, and moves its nodes in front of the node."""
    mini, operands = _mini(node, schema, body, opset)
    flat = inferred(inlined(mini)[0])[0]
    stable_variance.rewrite(flat.graph)
    RemoveUnusedNodesPass()(flat)
    results = [_own(flat.graph, value) for value in flat.graph.outputs]
    flat.graph.outputs.clear()
    for value, operand in zip(flat.graph.inputs, operands, strict=True):
        value.replace_all_uses_with(operand)
    moved = list(flat.graph)
    flat.graph.remove(moved)
    write.graph.insert_before(node, moved)
    every = [inner for one in moved for inner in (one, *walk.inside(one))]
    values = [value for one in every for value in one.outputs]
    values += [value for one in every for graph in walk.subgraphs(one) for value in graph.inputs]
    for value in values:
        if value.name:
            value.name = write.name(value.name)
    made = iter(results)
    write.replace([next(made) if value.name else value for value in node.outputs])
    return every


def _mini(node: ir.Node, schema: Any, body: onnx.FunctionProto, opset: int) -> tuple[ir.Model, list[ir.Value]]:
    """Returns a model that calls the body once, and the values of `node` that its inputs stand for."""
    body.domain = _DOMAIN
    wanted = [name for name, value in zip(body.output, node.outputs, strict=False) if value.name]
    del body.output[:]
    body.output.extend(wanted)
    graphs = {name for name, one in node.attributes.items() if walk.holds_subgraphs(one)}
    plain = [name for name in body.attribute if name not in graphs]
    del body.attribute[:]  # graph attributes are already part of the body
    body.attribute.extend(plain)
    function = ir.serde.deserialize_function(body)
    operands = [value for value in node.inputs if value is not None]
    inputs = [ir.Value(name=f"operand_{at}", type=one.type, shape=one.shape) for at, one in enumerate(operands)]
    given = iter(inputs)
    attributes = {
        name: ir.serde.deserialize_attribute(one.default_value)
        for name, one in schema.attributes.items()
        if one.default_value.type != onnx.AttributeProto.UNDEFINED
    } | dict(node.attributes)
    call = ir.Node(
        _DOMAIN,
        node.op_type,
        [None if value is None else next(given) for value in node.inputs],
        [one for name, one in attributes.items() if name in function.attributes],
        num_outputs=len(function.outputs),
    )
    for value, formal in zip(call.outputs, function.outputs, strict=True):
        value.name = f"result_{formal.name}"
    imports = {"": opset, _DOMAIN: 1}
    graph = ir.Graph(inputs, list(call.outputs), nodes=[call], opset_imports=imports, name=node.op_type)
    return ir.Model(graph, ir_version=10, functions=[function]), operands


def _own(graph: ir.Graph, value: ir.Value) -> ir.Value:
    """Returns the value, or an Identity of it if it is an operand."""
    if not value.is_graph_input():
        return value
    node = ir.node("Identity", [value])
    node.outputs[0].name = f"{value.name}_copy"
    graph.append(node)
    return node.outputs[0]
