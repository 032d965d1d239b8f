"""Makes nodes for Python's binary operators on tensors, with Python's meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.graph.operators import constant_tensors
from onnxsmith.graph.operators.function_attributes import Parameter as FunctionParameter
from onnxsmith.graph.operators.operand_types import typed
from onnxsmith.graph.operators.operands import Operand, is_tensor
from onnxsmith.graph.operators.tensor import Tensor
from onnxsmith.graph.structure.schema import Parameter

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
    if isinstance(other, FunctionParameter):
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
    if op in ("FloorDiv", "Mod", "Pow"):
        with home.atomic():
            return {"FloorDiv": _floor_div, "Mod": _mod, "Pow": _pow}[op](home, a, b)
    if op in _BITWISE and dtype != ir.DataType.BOOL:
        op = _BITWISE[op]
    return getattr(home, op)(a, b)


def _same_dtype(home: Operators, op: str, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Returns both operands as tensors of the graph. A Python number gets the dtype of the other operand.

    Raises:
        OnnxsmithError: `build/type` if their dtypes differ, `build/constant` if a Python number does not fit.
    """
    operands = [Operand(label, given, Parameter(label, type="T")) for label, given in (("A", a), ("B", b))]
    values = [given.value if isinstance(given, Tensor) else given if is_tensor(given) else None for given in (a, b)]
    first, second = (
        home.tensor(typed_) if isinstance(typed_, ir.Value) else home.constant(typed_)
        for typed_ in typed(op, operands, values, home.blame())
    )
    return first, second


def _pow(home: Operators, a: Any, b: Any) -> Any:
    """Makes a ** b. ONNX's Pow returns the dtype of a. So an integer a needs an integer b that is not negative."""
    if _is_kind(a, "f") and _is_kind(b, "i"):
        return home.Pow(a, b)
    base, exponent = _same_dtype(home, "**", a, b)
    dtype, known = base.value.dtype, exponent.value.const_value
    if dtype is not None and dtype.is_integer() and dtype.is_signed() and (known is None or (known.numpy() < 0).any()):
        shown = "unknown until the model runs" if known is None else "negative"
        unless = "g.Pow(a, b) if the exponents are never negative, or " if known is None else ""
        raise problem(
            "build/type",
            f"** on {base.dtype} has an exponent that is {shown}",
            where=home.blame(),
            why="Pow of whole numbers gives whole numbers, Python's ** gives a float for a negative exponent",
            fix=f'write {unless}g.Cast(a, to="float32") ** b',
        )
    return home.Pow(base, exponent)


def _is_kind(given: Any, kind: str) -> bool:
    """Whether an operand of known dtype has floats (kind `f`) or integers (kind `i`)."""
    if constant_tensors.is_python(given):
        return constant_tensors.kind_of(given) == kind
    dtype = given.dtype if isinstance(given, ir.Value | ir.TensorProtocol) else None
    if isinstance(given, Tensor):
        dtype = given.value.dtype
    elif dtype is None:
        return bool(np.asarray(given).dtype.kind in {"f": "f", "i": "iu"}[kind])
    return dtype is not None and (dtype.is_floating_point() if kind == "f" else dtype.is_integer())


def _floor_div(home: Operators, a: Any, b: Any) -> Any:
    """Makes a // b, which rounds down. Div of integers rounds towards zero, so the remainder, which has the sign of b,
    is subtracted first. Floats follow C's fmod, as in Python and numpy: Floor(Div(a, b)) is one too much where the
    rounded quotient is whole and the exact one is not, as 1.0 // 0.1 in float32. Floats of 16 bits are divided in
    float32, because numpy does so.
    """
    a, b = _same_dtype(home, "//", a, b)
    dtype = a.value.dtype
    if dtype is None or not dtype.is_floating_point():
        signed = dtype is None or dtype.is_signed()
        return home.Div(home.Sub(a, home.Mod(a, b)), b) if signed else home.Div(a, b)
    narrow = dtype.bitwidth < 32
    if narrow:
        a, b = home.Cast(a, to="float32"), home.Cast(b, to="float32")
    remainder, sign = home.Mod(a, b, fmod=1), home.Sign(b)
    towards_zero = home.Div(home.Sub(a, remainder), b)
    down = home.Where(home.Less(home.Mul(remainder, sign), 0), home.Sub(towards_zero, 1), towards_zero)
    whole = home.Round(down)  # it differs from a whole number by rounding alone
    # The plain quotient has the sign of a zero and the infinity of a division by zero. It is the third operand, because
    # Where of onnxruntime makes 0.0 of a -0.0 in the second.
    usual = home.And(home.Cast(whole, to="bool"), home.Cast(b, to="bool"))
    result = home.Where(usual, whole, home.Floor(home.Div(a, b)))
    return home.Cast(result, to=dtype) if narrow else result


def _mod(home: Operators, a: Any, b: Any) -> Any:
    """Makes a % b, which has the sign of b, also if it is zero. ONNX's Mod of floats, C's fmod, has the sign of a."""
    a, b = _same_dtype(home, "%", a, b)
    if a.value.dtype is None or not a.value.dtype.is_floating_point():
        return home.Mod(a, b)
    remainder, sign = home.Mod(a, b, fmod=1), home.Sign(b)
    same_sign = home.Mul(home.Abs(remainder), sign)
    return home.Where(home.Less(home.Mul(remainder, sign), 0), home.Add(remainder, b), same_sign)
