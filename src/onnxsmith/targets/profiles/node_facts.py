"""Collects the facts that are known before a run about a node's operands, results and attributes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.graph.operators.dtypes import shown
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import schema, walk
from onnxsmith.graph.structure.schema import Parameter, Schema
from onnxsmith.graph.structure.type_texts import type_text

_UNWRITTEN = {"strides": 1, "dilations": 1, "pads": 0, "output_padding": 0}
"""Maps attributes to default values that the specification gives only in words (Operators.md: Conv, ConvTranspose,
AveragePool, MaxPool, LpPool)."""

_PLAIN = {
    ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING,
    ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS,
}  # fmt: skip


@cache
def _schema(op: str, domain: str, version: int) -> Schema | None:
    return schema.find(op, domain, version)


@dataclass(frozen=True)
class Slot:
    """Describes an operand or a result that the node gives. `name` is its formal name, with an index if it is
    variadic."""

    name: str
    formal: Parameter | None
    value: ir.Value
    is_result: bool = False

    @property
    def dtype(self) -> str | None:
        """Returns the dtype, such as `float32`; `seq(tensor(float))` for a type that is no tensor; None if the type is
        unknown."""
        kind, constant = self.value.type, self.value.const_value
        if kind is None and constant is not None:
            return shown(constant.dtype)
        return shown(self.value.dtype) if isinstance(kind, ir.TensorType) else type_text(self.value) or None

    @property
    def is_tensor(self) -> bool:
        """Whether the value is a tensor, or of unknown type."""
        dtype = self.dtype
        return dtype is None or "(" not in dtype

    @cached_property
    def dims(self) -> tuple[int | str | None, ...] | None:
        """Returns the dimensions: integers, expressions, or None for an unknown size. Returns None if the rank is
        unknown."""
        constant = self.value.const_value
        if self.value.shape is None and constant is not None:
            return tuple(dim if isinstance(dim, int) else None for dim in constant.shape)
        return facts.dims(self.value)

    @property
    def is_static(self) -> bool:
        """Whether every dimension is a known integer."""
        return self.dims is not None and all(isinstance(dim, int) for dim in self.dims)

    @property
    def elements(self) -> int | None:
        """Returns the number of elements; None unless the shape is static."""
        return prod(dim for dim in self.dims or () if isinstance(dim, int)) if self.is_static else None


class Constants:
    """Finds the values of a model that are constant, that follow only from constants and static shapes, and that follow
    from constants and any shapes."""

    def __init__(self, model: ir.Model) -> None:
        self._parameters = {value for function in model.functions.values() for value in function.inputs}
        self._foldable: set[ir.Value] = set()
        self._from_shapes: set[ir.Value] = set()
        for node in walk.all_nodes(model):  # producers come first, so one pass is enough
            if self._folds(node, self._foldable, static=True):
                self._foldable.update(node.outputs)
            if self._folds(node, self._from_shapes, static=False):
                self._from_shapes.update(node.outputs)

    @staticmethod
    def _folds(node: ir.Node, known: set[ir.Value], *, static: bool) -> bool:
        if node.domain not in ("", "ai.onnx") or node.op_type in walk.RANDOM or walk.has_subgraphs(node):
            return False
        given = [value for value in node.inputs if value is not None]
        if node.op_type in ("Shape", "Size") and given:
            return not static or Slot("", None, given[0]).is_static
        return bool(given) and all(facts.is_constant(value) or value in known for value in given)

    def follows(self, value: ir.Value) -> bool:
        """Whether a value follows from constants and shapes, even if sizes are symbolic."""
        return value in self._from_shapes

    def doubt(self, value: ir.Value) -> str | None:
        """Returns why a value that is not constant may still be accepted as constant; None if the value is computed at
        run time."""
        if value in self._parameters:
            return "is a parameter of a local function"
        if value in self._foldable:
            return "is computed from constants; fold it, for example with `onnxsmith simplify`"
        return None


class Subject:
    """Describes a node of a model with inferred shapes. `version` is the opset version of the node's domain, None
    without an import."""

    def __init__(self, node: ir.Node, imports: dict[str, int], constants: Constants) -> None:
        self.node = node
        self.domain = "" if node.domain == "ai.onnx" else node.domain
        self.name = f"{self.domain}::{node.op_type}" if self.domain else node.op_type
        self.constants = constants
        version = imports.get(self.domain, imports.get("ai.onnx") if not self.domain else None)
        self.schema: Schema | None = _schema(node.op_type, self.domain, version) if version is not None else None

    @cached_property
    def operands(self) -> tuple[Slot, ...]:
        """Returns the operands that are given."""
        return tuple(self._slots(self.node.inputs, False))

    @cached_property
    def results(self) -> tuple[Slot, ...]:
        """Returns the results that are given."""
        return tuple(self._slots((value if value.name else None for value in self.node.outputs), True))

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Returns the operands, then the results."""
        return (*self.operands, *self.results)

    def _slots(self, values: Any, is_result: bool) -> Iterator[Slot]:
        for index, value in enumerate(values):
            if value is None:
                continue
            if self.schema is None:
                yield Slot(f"{'result' if is_result else 'operand'} {index}", None, value, is_result)
            elif is_result:
                yield Slot(self.schema.output_name(index), self.schema.output(index), value, True)
            else:
                yield Slot(self.schema.input_name(index), self.schema.input(index), value)

    def named(self, name: str) -> list[Slot]:
        """Returns the operands and results with this formal name, or of this type variable."""
        found = [slot for slot in self.slots if slot.formal is not None and slot.formal.name == name]
        found = found or [slot for slot in self.slots if slot.formal is not None and slot.formal.type == name]
        return found if found or self.knows(name) else self._renamed(name)

    def _renamed(self, name: str) -> list[Slot]:
        """Returns the operands and results at the places that have this name in the newest other version of the
        operator. New versions rename operands and type variables, but do not move them."""
        if self.schema is None or name in self.schema.attributes:
            return []
        versions = schema.versions(self.node.op_type, self.domain)
        for other in (_schema(self.node.op_type, self.domain, version) for version in reversed(versions)):
            if other is None or not any(name in (one.name, one.type) for one in (*other.inputs, *other.outputs)):
                continue
            read = [at for at, value in enumerate(self.node.inputs) if value is not None]
            made = [at for at, value in enumerate(self.node.outputs) if value.name]
            pairs = [*zip(self.operands, map(other.input, read), strict=True),
                     *zip(self.results, map(other.output, made), strict=True)]  # fmt: skip
            by_name = [slot for slot, formal in pairs if formal is not None and formal.name == name]
            return by_name or [slot for slot, formal in pairs if formal is not None and formal.type == name]
        return []

    def knows(self, name: str) -> bool:
        """Whether the schema in force has an operand, result or type variable of this name, whether or not the node
        gives it."""
        formals = (*self.schema.inputs, *self.schema.outputs) if self.schema is not None else ()
        return any(name in (one.name, one.type) for one in formals)

    def data(self) -> list[Slot]:
        """Returns the first operand, and all operands and results of its type variable. Without operands, the first
        result takes the place of the first operand."""
        first = next(iter(self.slots), None)
        if first is None or first.formal is None or not first.formal.type:
            return [first] if first is not None else []
        return [slot for slot in self.slots if slot.formal is not None and slot.formal.type == first.formal.type]

    def attribute(self, name: str) -> Any:
        """Returns the value of an attribute, or its default if the node does not give the attribute. Returns None if
        neither is known."""
        given = self.node.attributes.get(name)
        if given is None and self.schema is not None:
            given = self.schema.defaults.get(name)
        if given is None:
            return _UNWRITTEN.get(name)
        return given.value if not given.is_ref() and given.type in _PLAIN else None

    def known_values(self, slot: Slot) -> list[Any] | None:
        """Returns the elements of an operand that is constant or whose integers shape inference found; None
        otherwise."""
        array = self.array(slot)
        if array is not None:
            plain = array if array.dtype.kind in "biufSUO" else array.astype(np.float32)  # bfloat16, float8, int4
            return list(plain.ravel().tolist())
        integers = facts.integers(slot.value)
        if integers is None or not all(isinstance(one, int) for one in integers):
            return None
        return list(integers)

    def array(self, slot: Slot) -> npt.NDArray[Any] | None:
        """Returns the values of a constant operand; None if the operand is not constant."""
        return facts.constant(slot.value)

    def is_constant(self, slot: Slot) -> bool:
        """Whether an operand is an initializer or the result of a Constant node."""
        return facts.is_constant(slot.value)
