"""Makes nodes for Python's binary operators on tensors, with Python's meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.operators import constant_tensors
from onnxsmith.graph.operators.function_attributes import Parameter
from onnxsmith.graph.operators.tensor import Tensor

if TYPE_CHECKING:
    from onnxsmith.graph.operators.operator_methods import Operators

UFUNCS = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "floor_divide": "FloorDiv",
    "remainder": "Mod", "power": "Pow", "matmul": "MatMul", "less": "Less", "less_equal": "LessOrEqual",
    "greater": "Greater", "greater_equal": "GreaterOrEqual", "equal": "Equal", "bitwise_and": "And",
    "bitwise_or": "Or", "bitwise_xor": "Xor",
}  # fmt: skip
"""Names the functions that numpy calls for `array + x` and the like."""
_BITWISE = {"And": "BitwiseAnd", "Or": "BitwiseOr", "Xor": "BitwiseXor"}


def binary(home: Operators, op: str, tensor: Tensor, other: Any, *, swapped: bool) -> Any:
    """Makes the nodes of `tensor op other`; with `swapped`, of `other op tensor`. Returns NotImplemented if `other`
    cannot be an operand, so that Python asks `other`."""
    if isinstance(other, Parameter):
        other = home.constant(other)
    if not (
        isinstance(other, Tensor | ir.Value) or constant_tensors.is_array(other) or constant_tensors.is_python(other)
    ):
        return NotImplemented
    a, b = (other, tensor) if swapped else (tensor, other)
    dtype = tensor.value.dtype
    if op == "Div" and dtype is not None and dtype.is_integer():
        raise problem(
            "build/type",
            f"/ on {tensor.dtype} is not a division into floats in ONNX",
            where=home.blame(),
            why="Div of whole numbers rounds towards zero, Python's / gives a float",
            fix='write // for whole numbers, g.Div(a, b) to round towards zero, or g.Cast(x, to="float32") / y',
        )
    if op in ("FloorDiv", "Mod"):
        with home.atomic():
            return (_floor_div if op == "FloorDiv" else _mod)(home, a, b, dtype)
    if op in _BITWISE and dtype != ir.DataType.BOOL:
        op = _BITWISE[op]
    return getattr(home, op)(a, b)


def _floor_div(home: Operators, a: Any, b: Any, dtype: ir.DataType | None) -> Any:
    """Makes a // b, which rounds down. Div of integers rounds towards zero, so the remainder, which has the sign of b,
    is subtracted first."""
    if dtype is not None and dtype.is_floating_point():
        return home.Floor(home.Div(a, b))
    if dtype is not None and not dtype.is_signed():
        return home.Div(a, b)
    return home.Div(home.Sub(a, home.Mod(a, b)), b)


def _mod(home: Operators, a: Any, b: Any, dtype: ir.DataType | None) -> Any:
    """Makes a % b, which has the sign of b. ONNX's Mod of floats has the sign of a, so the remainder is computed by
    other nodes."""
    if dtype is None or not dtype.is_floating_point():
        return home.Mod(a, b)
    return home.Sub(a, home.Mul(home.Floor(home.Div(a, b)), b))
