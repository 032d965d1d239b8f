"""Writes a pattern as ONNX text with variables, which `pattern_parser.py` reads back as an equal pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.patterns.pattern import (
    Absent,
    Anything,
    AttributeVariable,
    Either,
    Exact,
    Number,
    Numbers,
    Operand,
    Pattern,
    Rest,
    Result,
    Variable,
)
from onnxsmith.graph.patterns.pattern_tracing import variable
from onnxsmith.graph.structure.fresh import unused

_PLAIN = {
    ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64,
    ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64,
}  # fmt: skip
_BITS = {ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
"""Lists dtypes whose elements ONNX text writes as bit patterns."""


def text(pattern: Pattern) -> str:
    """Returns the pattern as ONNX text.

    Raises:
        OnnxsmithError: `pattern/no-text`.
    """
    names = _names(pattern)
    head = ", ".join(_declared(one) for one in pattern.variables)
    lines = []
    for index, node in enumerate(pattern.nodes):
        results = ", ".join(names.get((index, n), "_") for n in range(len(node.outputs)))
        operator = (f"{node.domain}.{node.op_type}" if node.domain else node.op_type) or "any"
        attributes = ", ".join(f"{name} = {attribute_text(value)}" for name, value in node.attributes)
        operands = ", ".join(_operand(one, names) for one in node.inputs)
        lines.append(f"   {results} = {operator}{f' <{attributes}>' if attributes else ''} ({operands})")
    returned = []
    for index, output in enumerate(pattern.outputs):
        name = _operand(output, names)
        if isinstance(output, Either):
            lines.append(f"   choice_{index} = {name}")
            name = f"choice_{index}"
        returned.append(name)
    return "\n".join([f"{pattern.name} ({head}) => ({', '.join(returned)}) {{", *lines, "}"])


def _names(pattern: Pattern) -> dict[tuple[int, int], str]:
    """Names the results. A name that a variable or another result has already gets a number."""
    taken = {one.name for one in pattern.variables} | {f"choice_{n}" for n in range(len(pattern.outputs))}
    found: dict[tuple[int, int], str] = {}
    for index, node in enumerate(pattern.nodes):
        for n, wish in enumerate(node.outputs):
            if not wish:
                continue
            found[index, n] = unused(wish, taken)
            taken.add(found[index, n])
    return found


def _declared(given: Variable) -> str:
    return given.name if variable(given.name) == given else f"{given.kind.value} {given.name}"


def _operand(operand: Operand, names: Mapping[tuple[int, int], str]) -> str:
    match operand:
        case None:
            return '""'
        case Variable():
            return operand.name
        case Anything():
            return "_"
        case Rest():
            return "..."
        case Result():
            return names[operand.node, operand.output]
        case Either():
            return f"either({', '.join(_operand(one, names) for one in operand.choices)})"
        case _:
            return constant_text(operand)


def constant_text(operand: Number | Numbers | Exact) -> str:
    """Writes a constant as an operand."""
    if isinstance(operand, Number):
        return _number(operand.value) if not operand.rel else _near(operand)
    if isinstance(operand, Numbers):
        return f"[{', '.join(_number(one) for one in operand.values)}]"
    return f"Constant <value = {_tensor(operand)}> ()"


def _near(number: Number) -> str:
    return f"near({_number(number.value)}, rel = {_number(number.rel)})"


def _number(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def attribute_text(value: Any) -> str:
    """Writes the pattern's demand on an attribute."""
    match value:
        case AttributeVariable():
            return f"?{value.name}"
        case Absent():
            return "none"
        case Number():
            return _near(value)
        case Exact():
            return _tensor(value)
        case str():
            return _quoted(value)
        case float():
            return _single(value)
        case tuple():
            return f"[{', '.join(attribute_text(one) for one in value)}]"
    return str(value)


def _single(value: float) -> str:
    """Returns a number of an attribute, which is stored as float32."""
    if not np.isfinite(value):
        raise _unsayable(f"the attribute {value}")
    written = str(np.float32(value))
    return written if any(mark in written for mark in ".e") else f"{written}.0"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _tensor(given: Exact) -> str:
    shape = f"[{','.join(map(str, given.shape))}]" if given.shape else ""
    return f"{given.dtype.name.lower()}{shape} {{{', '.join(_elements(given))}}}"


def _elements(given: Exact) -> Sequence[str]:
    if given.dtype is ir.DataType.STRING:
        try:
            return [_quoted(one.decode()) for one in given.values]
        except UnicodeDecodeError:
            raise _unsayable("a constant with bytes that are no text") from None
    if given.dtype in _BITS:
        return [str(one) for one in given.array.ravel().view(np.uint16).tolist()]
    if given.dtype is ir.DataType.BOOL:
        return [str(int(one)) for one in given.values]
    if given.dtype not in _PLAIN:
        raise _unsayable(f"a constant of dtype {given.dtype.name.lower()}")
    return [str(one) if given.dtype is not ir.DataType.FLOAT else str(np.float32(one)) for one in given.values]


def _unsayable(what: str) -> OnnxsmithError:
    return problem(
        "pattern/no-text",
        f"ONNX text cannot say {what}",
        why="the pattern can be matched, but not written as text",
        fix="use a variable in its place: op.constant(name)",
    )
