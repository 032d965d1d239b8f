"""Finds nodes and tensors by name: in the graph, in its branches and bodies, and in its functions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Part
from onnxsmith.base.report.parts.item_views import Attribute, NodeView, Slot, TensorView
from onnxsmith.base.words import several
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.reading.exact_text import attribute_text, elements, value_type
from onnxsmith.graph.reading.scopes import Scope, nodes, scopes
from onnxsmith.graph.reading.weights import Held, held, place
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import provenance, schema
from onnxsmith.graph.structure.walk import node_label, op_name
from onnxsmith.viewer.inspection.tables import look

_SUGGESTED = 5
"""Limits the names in a suggestion. A choice: one line."""
_TORCH = "pkg.torch.onnx."


def views(shaped: ir.Model, name: str) -> tuple[Part, ...]:
    """Returns views of all nodes, then of all tensors, of this name, in a model with inferred shapes."""
    found: list[Part] = [
        node_view(shaped, scope, node, index) for index, (scope, node) in enumerate(nodes(shaped)) if node.name == name
    ]
    carried = {id(item.value): item for item in held(shaped)}
    found += [
        _tensor_view(scope, value, carried.get(id(value)))
        for scope in scopes(shaped)
        for value in _values(scope)
        if value.name == name
    ]
    return tuple(found)


def similar(model: ir.Model, name: str) -> list[str]:
    """Returns names that contain `name`, otherwise names with a similar spelling. The closest names come first."""
    known = {node.name for _, node in nodes(model)} | {v.name for scope in scopes(model) for v in _values(scope)}
    names = sorted(text for text in known if text)
    containing = [text for text in names if name and name.lower() in text.lower()]
    return sorted(containing, key=len)[:_SUGGESTED] or near_names(name, names, _SUGGESTED)


def _values(scope: Scope) -> Iterator[ir.Value]:
    """Yields the values that a scope defines, each once."""
    yield from scope.graph.inputs
    given = {id(value) for value in scope.graph.inputs}
    yield from (value for value in scope.graph.initializers.values() if id(value) not in given)
    for node in scope.graph:
        yield from (value for value in node.outputs if value.name)


def node_view(model: ir.Model, scope: Scope, node: ir.Node, index: int) -> NodeView:
    """Returns all facts about a node of a model with inferred shapes; `index` is its number in the order of `nodes`."""
    opset = scope.version(node.domain)
    spec = schema.find(node.op_type, node.domain, opset) if opset is not None else None
    origin = provenance.of(node)
    return NodeView(
        name=node.name or "",
        index=index,
        scope=scope.path,
        op=op_name(node),
        domain=node.domain,
        opset=opset,
        since=spec.since if spec else None,
        newest=spec.newest if spec else None,
        deprecated=bool(spec and spec.deprecated),
        function=node.op_identifier() in model.functions,
        inputs=tuple(
            Slot(spec.input_name(i) if spec else "", _name(value), value_type(value), _source(value))
            for i, value in enumerate(node.inputs)
        ),
        outputs=tuple(
            Slot(spec.output_name(i) if spec else "", _name(value), value_type(value), _readers(value))
            for i, value in enumerate(node.outputs)
        ),
        attributes=tuple(_attributes(node, spec)),
        module=origin.module,
        source=origin.source,
        torch_op=origin.op,
        doc=node.doc_string or "",
        metadata={key: text for key, text in node.metadata_props.items() if not key.startswith(_TORCH)},
    )


def _attributes(node: ir.Node, spec: schema.Schema | None) -> Iterator[Attribute]:
    for attribute in node.attributes.values():
        yield Attribute(attribute.name, attribute.type.name.lower(), attribute_text(attribute), True)
    for name, default in (spec.defaults if spec else {}).items():
        if name not in node.attributes and default is not None:
            yield Attribute(name, default.type.name.lower(), attribute_text(default), False)


def _tensor_view(scope: Scope, value: ir.Value, item: Held | None) -> TensorView:
    tensor = item.tensor if item else None
    found, trouble = look(item) if item else (None, "")
    values: tuple[str, ...] = ()
    if tensor is not None and not trouble:
        values = elements(tensor)
    producer = value.producer()
    return TensorView(
        name=value.name or "",
        scope=scope.path,
        roles=tuple(_roles(scope, value, item)),
        type=value_type(value),
        producer=_describe(producer) if producer else "",
        consumers=_readers(value),
        doc=value.doc_string or "",
        metadata=dict(value.metadata_props),
        where=place(tensor) if item else "",
        bytes=None if tensor is None else tensor.nbytes,
        elements=None if tensor is None else tensor.size,
        statistics=found,
        values=values,
        trouble=trouble,
    )


def _roles(scope: Scope, value: ir.Value, item: Held | None) -> Iterator[str]:
    kind = "subgraph" if scope.depth else "function" if scope.in_function else "graph"
    if value.is_graph_input():
        yield f"{kind} input"
    if item is not None:
        yield "constant" if item.constant else "initializer"
    elif value.producer() is not None:
        yield "made by a node"
    if value.is_graph_output():
        yield f"{kind} output"


def _name(value: ir.Value | None) -> str:
    return "" if value is None else value.name or ""


def _source(value: ir.Value | None) -> tuple[str, ...]:
    """Names the node that computes an operand, or the operand's role: input, initializer."""
    if value is None:
        return ()
    producer = value.producer()
    if producer is not None:
        return (_describe(producer),)
    roles = ("input" if value.is_graph_input() else "", "initializer" if value.is_initializer() else "")
    return tuple(role for role in roles if role)


def _readers(value: ir.Value) -> tuple[str, ...]:
    """Names the nodes that read a value; a graph output has one more entry, for the graph."""
    readers = [f"{_describe(use.node)}, input {use.idx}" for use in value.uses()]
    return tuple(readers + (["an output of its graph"] if value.is_graph_output() else []))


def _describe(node: ir.Node) -> str:
    return f"{op_name(node)} {node_label(node)}"


_SHOWN = 3
"""Limits the nodes of one operator that are shown. A choice: each node fills ten lines or more."""
_GROUP = re.compile(r"\.\.\.| \+ ")
"""Separates the names of nodes that TensorRT fused."""


def located(source: Source, names: Mapping[str, str]) -> tuple[tuple[Part, ...], tuple[str, ...], tuple[Problem, ...]]:
    """Returns views of the named nodes and tensors, notes, and the problem if the model cannot be read.

    The model is read even if the message names nothing in it, because a fault of the file is often the cause.

    A node is looked up by its name, then as the producer of the named tensor, then by its number in its graph, then by
    its operator.
    """
    where = str(source) if isinstance(source, str | Path) else "the model"
    try:
        model = load(source)
    except OnnxsmithError as error:
        return (), (f"{where} could not be read, so no node was looked up; the reason is below",), (error.problem,)
    shaped, trouble = inferred(model)
    notes = [trouble] if trouble else []
    if not names.keys() & {"node", "tensor", "op", "layer", "index"}:
        return (), (f"{where} was read, but the message names no node, tensor or operator", *notes), ()
    wanted = [name for key in ("node", "tensor", "layer") for name in _GROUP.split(names.get(key, "")) if name]
    parts = tuple(part for name in dict.fromkeys(wanted) for part in _called(shaped, name))
    if not parts:
        parts = tuple(_numbered(shaped, names))[:_SHOWN]
        if parts and not wanted and "op" not in names:
            notes.append(
                f"the message gives only a node number, {names['index']}; the node with this number in the main "
                "graph is shown"
            )
    if not parts and not wanted and "op" not in names:
        notes.append(f"{where} has no node with the number {names['index']} in its main graph")
    elif not parts:
        of_operator = list(_of_operator(shaped, names.get("op", "")))
        parts = tuple(of_operator[:_SHOWN])
        notes += _missing(shaped, where, wanted)
        if names.get("op"):
            notes.append(
                f"{where} has {several(len(of_operator), 'node')} with operator {names['op']}; {len(parts)} shown"
            )
    return parts, tuple(notes), ()


def _called(shaped: ir.Model, name: str) -> Iterator[Part]:
    for index, (scope, node) in enumerate(nodes(shaped)):
        if node.name != name and any(value.name == name for value in node.outputs):
            yield node_view(shaped, scope, node, index)
    yield from views(shaped, name)


def _numbered(shaped: ir.Model, names: Mapping[str, str]) -> Iterator[Part]:
    """Yields the nodes with the number from the message: each graph, branch and body has its own numbers. If the
    message names an operator, the nodes have that operator, otherwise the node is of the main graph."""
    numbers: Counter[str] = Counter()
    for index, (scope, node) in enumerate(nodes(shaped)):
        number, op = str(numbers[scope.path]), names.get("op")
        numbers[scope.path] += 1
        if number == names.get("index") and (node.op_type == op if op else not scope.path):
            yield node_view(shaped, scope, node, index)


def _of_operator(shaped: ir.Model, op: str) -> Iterator[Part]:
    kind = re.split(r"[.:]", op)[-1]
    for index, (scope, node) in enumerate(nodes(shaped)):
        if kind and node.op_type == kind:
            yield node_view(shaped, scope, node, index)


def _missing(shaped: ir.Model, where: str, wanted: list[str]) -> Iterator[str]:
    for name in wanted:
        close = similar(shaped, name)
        ending = (
            f"; similar names: {', '.join(close)}" if close else "; runtimes make up names for nodes that they fuse"
        )
        yield f"{where} has no node or tensor called {name}{ending}"
