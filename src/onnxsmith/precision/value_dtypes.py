"""Finds the dtypes of values from ONNX's schemas and a runtime's own.

Shape inference knows only ONNX's operators. So after a runtime's own operator (`com.microsoft::FusedMatMul`) no value
has a dtype, and no later node is recognised as float32.
"""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.graph.structure import schema, walk
from onnxsmith.graph.structure.schema import Parameter, Schema
from onnxsmith.runtimes.base import Runtime

NAMING = ("to", "dtype", "output_dtype", "output_datatype")
"""Attributes that set the dtype of an output."""


class Operators:
    """The schemas of a model's nodes."""

    def __init__(self, model: ir.Model, runtime: Runtime | None = None) -> None:
        self._versions = dict(model.opset_imports)
        self._own: dict[tuple[str, str], list[Schema]] = {}
        own = {node.domain for node in walk.nodes(model.graph) if node.domain not in ("", "ai.onnx", "ai.onnx.ml")}
        for known in runtime.schemas(own) if runtime is not None and own else ():
            self._own.setdefault((known["domain"], known["name"]), []).append(_schema(known))

    def of(self, node: ir.Node) -> Schema | None:
        """Returns the node's schema: ONNX's, or the runtime's for an operator that ONNX lacks."""
        version = self._versions.get(node.domain, 1)
        known = schema.find(node.op_type, node.domain, version)
        own = [one for one in self._own.get((node.domain, node.op_type), ()) if one.since <= version]
        return known or max(own, key=lambda one: one.since, default=None)

    def is_own(self, node: ir.Node) -> bool:
        """Whether only the runtime has the operator."""
        return (node.domain, node.op_type) in self._own

    def newer(self, node: ir.Node) -> Iterator[Schema]:
        """Yields ONNX's later schemas of the operator, the oldest first."""
        known = self.of(node)
        for version in range(known.since + 1, known.newest + 1) if known is not None else ():
            found = schema.find(node.op_type, node.domain, version)
            if found is not None and found.since == version:
                yield found


def _schema(known: dict[str, object]) -> Schema:
    sides = {}
    for side in ("inputs", "outputs"):
        items: list[tuple[str, bool, str, list[str]]] = known[side]  # type: ignore[assignment]
        sides[side] = tuple(
            Parameter(name, variadic=variadic, type=variable, types=frozenset(types))
            for name, variadic, variable, types in items
        )
    since = int(known["since"])  # type: ignore[call-overload]
    attributes: dict[str, bool] = known["attributes"]  # type: ignore[assignment]
    return Schema(
        since=since,
        newest=since,
        deprecated=False,
        inputs=sides["inputs"],
        outputs=sides["outputs"],
        required=tuple(sorted(name for name, needed in attributes.items() if needed)),
        defaults={name: None for name, needed in sorted(attributes.items()) if not needed},
    )


def fill(model: ir.Model, operators: Operators) -> None:
    """Adds missing dtypes to the values of `model`, as far as they follow from earlier values. Removes dtypes that
    shape inference guessed for a runtime's own operator, unless the operator's schema gives them."""
    _fill(model.graph, operators)


def _fill(graph: ir.Graph, operators: Operators) -> None:
    for value in graph.initializers.values():
        if value.type is None and value.const_value is not None:
            value.type = ir.TensorType(value.const_value.dtype)
    for node in graph:
        bodies = list(walk.subgraphs(node))
        for body in bodies:
            _fill(body, operators)
        found = list(_from_bodies(node, bodies) if bodies else _from_schema(node, operators.of(node)))
        # Shape inference only guessed the types of a runtime's own operator.
        if operators.is_own(node):
            for value in node.outputs:
                value.type = None
        for value, dtype in found:
            if value.type is None:
                value.type = ir.TensorType(dtype)


Found = Iterator[tuple[ir.Value, ir.DataType]]


def _from_bodies(node: ir.Node, bodies: list[ir.Graph]) -> Found:
    """Yields dtypes from the bodies' outputs. The first output of a Loop's body is the condition, which the node does
    not return."""
    skipped = 1 if node.op_type == "Loop" else 0
    for body in bodies:
        for value, given in zip(node.outputs, body.outputs[skipped:], strict=False):
            if given.dtype is not None and (given.type is None or isinstance(given.type, ir.TensorType)):
                yield value, given.dtype


def _from_schema(node: ir.Node, known: Schema | None) -> Found:
    if known is None:
        return
    bound: dict[str, ir.DataType] = {}
    for index, value in enumerate(node.inputs):
        formal = known.input(index)
        if formal is not None and value is not None and value.dtype is not None:
            bound.setdefault(formal.type, value.dtype)
    named = next((node.attributes[name].as_int() for name in NAMING if name in node.attributes), None)
    for index, value in enumerate(node.outputs):
        formal = known.output(index)
        if formal is None:
            continue
        only = next(iter(formal.types)) if len(formal.types) == 1 else formal.type
        if formal.type in bound:
            yield value, bound[formal.type]
        elif only.startswith("tensor("):
            yield value, _DTYPES[only.removeprefix("tensor(").removesuffix(")")]
        elif named is not None:
            yield value, ir.DataType(named)


_DTYPES = {dtype.name.lower(): dtype for dtype in ir.DataType}
