"""Represents a node for a size rule: its shapes, attributes and constants, and the errors that the rule raises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.schema import Schema

Dim = int | str | None
Dims = tuple[Dim, ...]


@dataclass(frozen=True)
class Call:
    """A node with its schema and the user's line."""

    node: ir.Node
    schema: Schema
    where: str

    def dims(self, index: int) -> Dims | None:
        """Returns the shape of an operand; None if it is missing or its rank is unknown."""
        return facts.dims(self._value(index))

    def rank(self, index: int) -> int | None:
        """Returns the rank of an operand; None if it is missing or unknown."""
        found = self.dims(index)
        return None if found is None else len(found)

    def has(self, index: int) -> bool:
        """Whether an operand is there."""
        return self._value(index) is not None

    def integers(self, index: int) -> list[int] | None:
        """Returns the elements of an operand if all are known numbers, else None."""
        known = facts.integers(self._value(index))
        numbers = [number for number in known or () if isinstance(number, int)]
        return numbers if known is not None and len(numbers) == len(known) else None

    def attribute(self, name: str, default: Any = None) -> Any:
        """Returns the value of an attribute, or the schema's default, or `default`."""
        held = self.node.attributes.get(name) or self.schema.defaults.get(name)
        return default if held is None else held.value

    def axes(self, index: int, name: str = "axes") -> list[int] | None:
        """Returns the axes, which are an operand in newer opsets and an attribute in older opsets; None if they are
        unknown."""
        held = self.node.attributes.get(name)
        return list(held.as_ints()) if held is not None else self.integers(index)

    def label(self, index: int) -> str:
        """Returns the name of an operand."""
        return self.schema.input_name(index)

    def refuse(self, index: int, expected: str, fix: str, why: str = "") -> OnnxsmithError:
        """Returns the error for an operand whose shape differs from the expected one."""
        return problem(
            "build/shape",
            f"{self.node.op_type}: {self.label(index)} has the shape {shown(self.dims(index))}, not {expected}",
            where=self.where,
            why=why or self._others(index),
            fix=fix,
        )

    def refuse_value(self, what: str, fix: str, why: str = "") -> OnnxsmithError:
        """Returns the error for an attribute, or for elements of an operand, that do not fit."""
        return problem(
            "build/shape", f"{self.node.op_type}: {what}", where=self.where, why=why or self._others(), fix=fix
        )

    def _value(self, index: int) -> ir.Value | None:
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def _others(self, but: int | None = None) -> str:
        if sum(1 for value in self.node.inputs if value is not None) == 1 and but is not None:
            return "the specification of the operator demands it"
        told = [f"{self.label(i)} has {shown(self.dims(i))}" for i in range(len(self.node.inputs)) if self.has(i)]
        return ", ".join(text for i, text in enumerate(told) if i != but)


def shown(dims: Dims | None) -> str:
    """Returns a shape as text: `[batch, 3, ?]`."""
    return "[…]" if dims is None else f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"


def clash(a: Dim, b: Dim) -> bool:
    """Whether two sizes are different numbers. A name may have any size."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def normal(axis: int, rank: int) -> int:
    """Returns the axis counted from the front."""
    return axis + rank if axis < 0 else axis


def product(dims: Dims) -> int | None:
    """Returns the number of elements if every size is a number."""
    count = 1
    for dim in dims:
        if not isinstance(dim, int):
            return None
        count *= dim
    return count
