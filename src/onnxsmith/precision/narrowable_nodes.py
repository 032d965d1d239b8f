"""Finds the nodes of a model that could compute in a narrower float, and gives them names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.schema import Parameter, Schema
from onnxsmith.precision.value_dtypes import NAMING, Operators

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
        return "it draws random numbers, which would differ in another dtype"
    known = operators.of(node)
    if known is None:
        return "neither onnx nor the runtime has a schema for it"
    if _is_open(node, known, to):
        return "the dtype of one of its values is unknown"
    free = _variables(node, known, to)
    inputs = tuple(i for i, v in enumerate(node.inputs) if _is_float(v) and _type(known.input(i)) in free)
    outputs, attribute = _outputs(node, known, free, to)
    if not inputs and not outputs:
        later = _later(node, operators, to)
        return f"the operator has no {to.name.lower()} {f'before opset {later}' if later else 'by its schema'}"
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
