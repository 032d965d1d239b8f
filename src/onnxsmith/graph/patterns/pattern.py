"""Defines a pattern of operators as plain data.

A pattern is a small graph: nodes, the operands that they read, and the results that a replacement would replace. An
operand is a variable, a constant, a result of another node of the pattern, or a choice between operands."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir


class Kind(Enum):
    """What a variable stands for: any value, a constant, or a constant with one element.

    Two scalars are equal if their numbers are equal; their shapes may be `[]`, `[1]` or `[1, 1]`."""

    VALUE = ""
    CONSTANT = "const"
    SCALAR = "scalar"


@dataclass(frozen=True)
class Variable:
    """A value that the pattern names. Wherever the name stands again, it means the same value."""

    name: str
    kind: Kind = Kind.VALUE


@dataclass(frozen=True)
class Number:
    """A constant with one element, of any dtype and rank, that equals this number after rounding to its dtype, or
    within the relative tolerance `rel`."""

    value: float | bool
    rel: float = 0.0


@dataclass(frozen=True)
class Numbers:
    """A constant list: a tensor of rank 1 of any dtype."""

    values: tuple[float | bool, ...]


@dataclass(frozen=True)
class Exact:
    """A constant with this dtype, this shape and these elements, in row-major order."""

    dtype: ir.DataType
    shape: tuple[int, ...]
    values: tuple[Any, ...]

    @property
    def array(self) -> npt.NDArray[Any]:
        """The constant as an array; strings are an array of objects."""
        kind = object if self.dtype is ir.DataType.STRING else self.dtype.numpy()
        return np.array(self.values, dtype=kind).reshape(self.shape)


@dataclass(frozen=True)
class Anything:
    """Any value, without a name. Unlike a variable, it may be a different value each time."""


@dataclass(frozen=True)
class Rest:
    """Any number of further operands, none included. It is the last operand."""


@dataclass(frozen=True)
class Result:
    """An output of a node of the pattern: the node's index, and the output's position."""

    node: int
    output: int = 0


@dataclass(frozen=True)
class Either:
    """A choice between operands; the first that matches counts."""

    choices: tuple[Operand, ...]


Operand = Variable | Number | Numbers | Exact | Anything | Rest | Result | Either | None
"""Is an operand of a pattern's node. None stands for an operand that must be left out."""


@dataclass(frozen=True)
class AttributeVariable:
    """An attribute of any value. Attributes with the same name must have equal values; an empty name is not
    compared."""

    name: str = ""


@dataclass(frozen=True)
class Absent:
    """An attribute that is left out, or has its default value."""


Wanted = AttributeVariable | Absent | Number | Exact | int | float | str | tuple[Any, ...]
"""Is the demand on an attribute: a variable, left out, a number within a tolerance, a tensor, or a value."""


@dataclass(frozen=True)
class PatternNode:
    """One operator of a pattern. `op_type` is empty for any operator. `outputs` are the names of its results.

    An attribute that is not in `attributes` may have any value."""

    op_type: str
    domain: str
    inputs: tuple[Operand, ...]
    attributes: tuple[tuple[str, Wanted], ...] = ()
    outputs: tuple[str, ...] = ("",)

    @property
    def title(self) -> str:
        """The operator as text: `Conv`, `com.microsoft::Gelu`, or `any operator`."""
        if not self.op_type:
            return "any operator"
        return f"{self.domain}::{self.op_type}" if self.domain else self.op_type


@dataclass(frozen=True)
class Pattern:
    """A pattern of operators. `nodes` are sorted topologically. `outputs` are its results; each may be a choice between
    results. `variables` are in the order of the parameters, or of first use."""

    nodes: tuple[PatternNode, ...]
    outputs: tuple[Result | Either | Variable, ...]
    variables: tuple[Variable, ...] = field(default=())
    name: str = "find"

    def text(self) -> str:
        """Returns the pattern as ONNX text with variables, which `pattern_of` reads back equal.

        Raises: OnnxsmithError: `pattern/no-text` if a part of the pattern cannot be written as text.
        """
        from onnxsmith.graph.patterns.pattern_printer import text

        return text(self)
