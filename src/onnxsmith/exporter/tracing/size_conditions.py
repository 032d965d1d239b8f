"""Writes a condition on sizes from torch's trace as nodes of an ONNX graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx_ir as ir
import sympy

from onnxsmith.base.problem import problem
from onnxsmith.exporter.tracing.size_branches import Axis, SizeBranch

_COMPARED = {
    "Equality": "Equal",
    "StrictLessThan": "Less",
    "LessThan": "LessOrEqual",
    "StrictGreaterThan": "Greater",
    "GreaterThan": "GreaterOrEqual",
}
"""Maps the classes of sympy's relations to the operators that compute them."""
_FOLDED = {"Add": "Add", "Mul": "Mul"}
_REAL = {"IntTrueDiv", "FloatTrueDiv", "ToFloat"}
"""Names functions of torch's symbolic sizes whose result is a float; Python computes them in float64."""
_ROUNDED = {"CeilToInt": "Ceil", "FloorToInt": "Floor", "TruncToInt": ""}
"""Maps functions that round a float to a whole number to their operators; "" stands for those that a Cast to int64
computes alone."""


def holds(branches: Sequence[SizeBranch]) -> Callable[[ir.tape.Tape, Mapping[Axis, ir.Value]], ir.Value]:
    """Returns a writer of nodes that compute whether all these conditions hold. It takes a tape, and the size of each
    axis as an int64 tensor of shape [1].

    Raises:
        OnnxsmithError: `forward/size-compared`, when the writer meets an expression without ONNX operators.
    """

    def write(tape: ir.tape.Tape, sizes: Mapping[Axis, ir.Value]) -> ir.Value:
        parts = [_Writer(tape, branch, sizes).value(branch.condition) for branch in branches]
        return tape.op("Squeeze", [reduce(lambda a, b: tape.op("And", [a, b]), parts)])

    return write


class _Writer:
    """Writes the expressions of one condition. Every value has the shape [1]."""

    def __init__(self, tape: ir.tape.Tape, branch: SizeBranch, sizes: Mapping[Axis, ir.Value]) -> None:
        self._tape, self._branch, self._sizes = tape, branch, sizes

    def value(self, expression: Any) -> ir.Value:
        """Returns the result of an expression: int64, double for a fraction, bool for a relation."""
        name = type(expression).__name__
        if isinstance(expression, sympy.Symbol):
            return self._sizes[self._branch.axes[str(expression)]]
        if isinstance(expression, sympy.Integer):
            return self._constant(np.int64(int(expression)))
        if isinstance(expression, sympy.Float | sympy.Rational):
            return self._constant(np.float64(float(expression)))
        if expression in (sympy.true, sympy.false):
            return self._constant(np.bool_(bool(expression)))
        return self._computed(name, [self.value(one) for one in expression.args])

    def _computed(self, name: str, given: list[ir.Value]) -> ir.Value:
        if name in _FOLDED:
            return reduce(lambda a, b: self._op(_FOLDED[name], *self._alike(a, b)), given)
        if name in ("Max", "Min"):
            return reduce(lambda a, b: self._op(name, *self._alike(a, b)), given)
        if name in ("And", "Or"):
            return reduce(lambda a, b: self._op(name, a, b), given)
        if name == "Not":
            return self._op("Not", given[0])
        if name in _COMPARED:
            return self._op(_COMPARED[name], *self._alike(*given))
        if name == "Unequality":
            return self._op("Not", self._op("Equal", *self._alike(*given)))
        if name in _REAL:
            wide = [self._cast(one, ir.DataType.DOUBLE) for one in given]
            return self._op("Div", *wide) if len(wide) == 2 else wide[0]
        if name in _ROUNDED:
            whole = self._op(_ROUNDED[name], given[0]) if _ROUNDED[name] else given[0]
            return self._cast(whole, ir.DataType.INT64)
        if name in ("Mod", "PythonMod", "FloorDiv", "CleanDiv", "CeilDiv"):
            return self._divided(name, *given)
        raise problem(
            "forward/size-compared",
            "a branch depends on a dynamic size",
            where=self._branch.line,
            why=f"both sides were traced, but {name} in its condition cannot be written as ONNX nodes",
            fix="write both sides as one computation, or compare whole numbers",
        )

    def _divided(self, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """Writes a quotient or remainder of whole numbers that rounds down, as in Python; ONNX's Div rounds towards
        0."""
        rest = self._op("Mod", a, b)
        if name in ("Mod", "PythonMod"):
            return rest
        if name == "CeilDiv":
            low = self._op("Neg", a)
            return self._op("Neg", self._divided("FloorDiv", low, b))
        return self._op("Div", self._op("Sub", a, rest), b)

    def _alike(self, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
        """Casts both to double if one is double."""
        if a.dtype == b.dtype:
            return a, b
        return self._cast(a, ir.DataType.DOUBLE), self._cast(b, ir.DataType.DOUBLE)

    def _cast(self, value: ir.Value, dtype: ir.DataType) -> ir.Value:
        return value if value.dtype == dtype else self._op("Cast", value, to=dtype)

    def _op(self, kind: str, *given: ir.Value, **attributes: Any) -> ir.Value:
        made = self._tape.op(kind, list(given), attributes or None)
        is_bool = kind in ("And", "Or", "Not") or kind in _COMPARED.values()
        dtype = ir.DataType.BOOL if is_bool else attributes.get("to", given[0].dtype)
        made.type = ir.TensorType(dtype or ir.DataType.INT64)
        made.shape = ir.Shape([1])
        return made

    def _constant(self, number: Any) -> ir.Value:
        return self._tape.initializer(ir.tensor(np.asarray([number])), name="size")
