"""Finds the dtypes of a model's values, and the nodes that could compute in a narrower float.

Shape inference knows only ONNX's operators. So after a runtime's own operator (`com.microsoft::FusedMatMul`) no value
has a dtype, and no later node is recognised as float32.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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


def fill_dtypes(model: ir.Model, operators: Operators) -> None:
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


NARROW = {"float16": ir.DataType.FLOAT16, "bfloat16": ir.DataType.BFLOAT16}
"""The possible dtypes, by name."""
VALUE = "value"
"""The attribute of ConstantOfShape whose tensor sets the dtype."""


@dataclass(frozen=True)
class Unit:
    """A node that can be narrow. `index` is its position in `walk.nodes`. `inputs` and `outputs` are the indices of the
    operands that become narrow. `attribute` sets the dtype of the node's result, if an attribute does."""

    index: int
    name: str
    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attribute: str = ""


@dataclass(frozen=True)
class Units:
    """The nodes that can be narrow, and why other nodes with float32 values cannot: reason → operator → count. `other`
    counts nodes without float32 values: they hold integers, or floats of another width."""

    units: tuple[Unit, ...]
    fixed: Mapping[str, Mapping[str, int]]
    other: int = 0

    @property
    def by_name(self) -> dict[str, Unit]:
        """Returns the nodes by name."""
        return {unit.name: unit for unit in self.units}


def find(
    model: ir.Model, to: ir.DataType, operators: Operators | None = None, *, wide: ir.DataType = ir.DataType.FLOAT
) -> Units:
    """Finds the nodes of `model`, a model with inferred dtypes, that can compute in `to` instead of `wide`. `operators`
    may include the schemas of a runtime's own operators."""
    operators = operators or Operators(model)
    found: list[Unit] = []
    other = 0
    fixed: dict[str, Counter[str]] = {}
    names = labels(model)
    for index, node in enumerate(walk.nodes(model.graph)):
        if node.op_type == "Constant" and not node.domain:
            continue
        if not _touches_float(node) and not _is_unknown(node):
            other += 1
            continue
        unit = _unit(node, index, names[index], operators, to)
        if isinstance(unit, Unit):
            found.append(unit)
        else:
            fixed.setdefault(unit, Counter())[walk.op_name(node)] += 1
    return Units(tuple(found), fixed, other)


def labels(model: ir.Model) -> Sequence[str]:
    """Returns a unique name for each node of `walk.nodes`: usually its own. If several nodes share that, uses `-> ` and
    the name of the result; if several share that too, the path of the bodies around the node."""
    plain = [walk.node_label(node) for node in walk.nodes(model.graph)]
    made = [next((f"-> {v.name}" for v in node.outputs if v.name), "") for node in walk.nodes(model.graph)]
    full = [f"{path}{label}" for path, label in _paths(model.graph, "")]
    shared, once, twice = Counter(plain), Counter(made), Counter(full)
    found = []
    for index, label in enumerate(plain):
        if shared[label] == 1:
            found.append(label)
        elif made[index] and once[made[index]] == 1:
            found.append(made[index])
        else:
            found.append(full[index] if twice[full[index]] == 1 else f"{full[index]} #{index}")
    return found


def _paths(graph: ir.Graph, path: str) -> Iterator[tuple[str, str]]:
    for node in graph:
        yield path, walk.node_label(node)
        for name, inner in walk.named_subgraphs(node):
            yield from _paths(inner, f"{path}{walk.node_label(node)}/{name}/")


def _is_float(value: ir.Value | None) -> bool:
    return value is not None and value.dtype == ir.DataType.FLOAT


def _touches_float(node: ir.Node) -> bool:
    return any(_is_float(value) for value in (*node.inputs, *node.outputs))


def _is_unknown(node: ir.Node) -> bool:
    """Whether the dtypes are too incomplete to tell if the node has float values."""
    values = [value for value in (*node.inputs, *node.outputs) if value is not None and value.name]
    return any(value.type is None for value in node.outputs if value.name) and any(v.dtype is None for v in values)


def _unit(node: ir.Node, index: int, name: str, operators: Operators, to: ir.DataType) -> Unit | str:
    if walk.has_subgraphs(node):
        return "inputs and outputs of bodies stay float32; the nodes inside are judged one by one"
    if any(v is not None and v.type is not None and not isinstance(v.type, ir.TensorType) for v in _values(node)):
        return "sequences and optional values are not converted"
    if node.op_type in walk.RANDOM and not node.domain:
        return "the node draws random numbers, which would differ in another dtype"
    known = operators.of(node)
    if known is None:
        return "neither onnx nor the runtime has a schema for the operator"
    if _is_open(node, known, to):
        return "the dtype of one of its inputs or results is unknown"
    free = _variables(node, known, to)
    inputs = tuple(i for i, v in enumerate(node.inputs) if _is_float(v) and _type(known.input(i)) in free)
    outputs, attribute = _outputs(node, known, free, to)
    if not inputs and not outputs:
        later = _later(node, operators, to)
        return (
            f"the operator does not support {to.name.lower()} "
            f"{f'before opset {later}' if later else 'according to its schema'}"
        )
    return Unit(index, name, walk.op_name(node), inputs, outputs, attribute)


def _later(node: ir.Node, operators: Operators, to: ir.DataType) -> int:
    """Returns the first newer opset in which the operator allows the dtype in place of float32; 0 if there is none."""
    for newer in operators.newer(node):
        if any(
            _is_float(v) and _type(newer.input(i)) in _variables(node, newer, to) for i, v in enumerate(node.inputs)
        ):
            return newer.since
    return 0


def _values(node: ir.Node) -> tuple[ir.Value | None, ...]:
    return (*node.inputs, *node.outputs)


def _type(formal: Parameter | None) -> str:
    return formal.type if formal is not None else ""


def _allows(formal: Parameter | None, dtype: ir.DataType) -> bool:
    return formal is not None and f"tensor({dtype.name.lower()})" in formal.types


def _is_open(node: ir.Node, known: Schema, to: ir.DataType) -> bool:
    """Whether a value of unknown dtype may be a float that would have to become narrow with the node."""
    pairs = [(value, known.input(i)) for i, value in enumerate(node.inputs)]
    pairs += [(value, known.output(i)) for i, value in enumerate(node.outputs) if value.name]
    return any(value is not None and value.dtype is None and _allows(formal, to) for value, formal in pairs)


def _variables(node: ir.Node, known: Schema, to: ir.DataType) -> set[str]:
    """Returns the type variables that are float32 in this node and may be narrow."""
    pairs = [(value, known.input(i)) for i, value in enumerate(node.inputs)]
    return {_type(formal) for value, formal in pairs if _is_float(value) and _allows(formal, to)}


def _outputs(node: ir.Node, known: Schema, free: set[str], to: ir.DataType) -> tuple[tuple[int, ...], str]:
    """Returns the outputs that become narrow, with an input of their type variable or by an attribute, and this
    attribute."""
    bound = {_type(known.input(i)) for i, value in enumerate(node.inputs) if value is not None}
    attribute = _attribute(node, known)
    found, named = [], ""
    for i, value in enumerate(node.outputs):
        formal = known.output(i)
        if not _is_float(value) or not _allows(formal, to):
            continue
        # An output has the dtype of the inputs with its type variable, and stays wide if these do.
        if _type(formal) in bound:
            if _type(formal) in free:
                found.append(i)
        elif attribute:
            found.append(i)
            named = attribute
    return tuple(found), named


def _attribute(node: ir.Node, known: Schema) -> str:
    if node.op_type == "ConstantOfShape":
        return VALUE
    possible = (*known.required, *known.defaults)
    return next((name for name in NAMING if name in possible), "")
