"""Infers the shapes of some values from what the model declares for the others, instead of all shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import onnx_ir as ir

from onnxsmith.base.seams import shape_engine
from onnxsmith.base.seams.metadata import metadata_props
from onnxsmith.graph.shapes import sound_shapes
from onnxsmith.graph.shapes.dims import names_in
from onnxsmith.graph.shapes.known_integers import FOLLOWED
from onnxsmith.graph.shapes.symbolic_inference import is_expression
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import names_something, signature


@contextmanager
def needed(model: ir.Model, values: Iterable[ir.Value]) -> Iterator[bool]:
    """Gives `values` of the main graph their shapes while the block runs, and says whether it could. The nodes from the
    nearest declared shapes to the values are inferred.

    It could not if a dimension is no size, and no name or expression of names of the inputs: inference of the whole
    model may know more. The model then stays as it is."""
    wanted = list(values)
    names = set(signature(model).symbols())
    nodes = _undeclared(model, wanted)
    outputs = [value for node in nodes or () for value in node.outputs]
    before = [(value, value.shape, value.type, dict(metadata_props(value))) for value in outputs]
    for value, shape, *_ in before:
        value.shape = None if shape is None else ir.Shape(shape.dims)  # the engine writes into a shape
    try:
        done = nodes is not None and _infer(model, nodes, names) and all(_is_known(value, names) for value in wanted)
        if done:
            yield True
    finally:
        for value, shape, type_, notes in before:
            value.shape, value.type = shape, type_
            if metadata_props(value) != notes:
                value.metadata_props.clear()
                value.metadata_props.update(notes)
    if not done:
        yield False


def _undeclared(model: ir.Model, wanted: Iterable[ir.Value]) -> list[ir.Node] | None:
    """Returns the nodes, in their order, that compute `wanted` from values with a declared shape; None if one of them
    has a body or calls a function."""
    found: set[ir.Node] = set()
    waiting = list(wanted)
    while waiting:
        value = waiting.pop()
        node = value.producer()
        if node is None or node in found or _is_declared(value):
            continue
        if node.graph is not model.graph or walk.has_subgraphs(node) or node.op_identifier() in model.functions:
            return None
        found.add(node)
        waiting += [operand for operand in node.inputs if operand is not None]
    return [node for node in model.graph if node in found] if found else []


def _is_declared(value: ir.Value) -> bool:
    """Whether inference needs nothing of the value but what is declared: integers may be sizes."""
    shape = value.shape
    if shape is None or value.dtype is None or (value.dtype in FOLLOWED and shape.rank() < 2):
        return False
    return all(dim >= 0 if isinstance(dim, int) else names_something(dim.value or "") for dim in shape)


def _infer(model: ir.Model, nodes: list[ir.Node], names: set[str]) -> bool:
    """Infers these nodes, and returns whether each rule succeeded. New dimensions get other names than `names`."""
    texts = {dim.value for value in _operands(nodes) for dim in value.shape or () if isinstance(dim, ir.SymbolicDim)}
    if not all(text is not None and is_expression(text) for text in texts):
        return False
    context = sound_shapes.context(model)
    context.reserve_symbol_names(names)
    weights = [value for value in _operands(nodes) if value.is_initializer()]
    try:
        with shape_engine.walking():
            shape_engine.walk(context, ir.GraphView((), (), nodes=nodes, initializers=weights))
    except Exception:  # noqa: BLE001 — an alpha engine may raise anything; inference of the whole model reports it
        return False
    return True


def _operands(nodes: Iterable[ir.Node]) -> Iterator[ir.Value]:
    return (value for node in nodes for value in node.inputs if value is not None)


def _is_known(value: ir.Value, names: set[str]) -> bool:
    if value.shape is None:
        return value.const_value is not None
    return all(
        dim >= 0
        if isinstance(dim, int)
        else dim.value is not None and (dim.value in names or names.issuperset(names_in(dim.value) or ("",)))
        for dim in value.shape
    )
