"""Defines the handle of a tensor in a graph that is being written: its name, dtype and shape, and Python's
operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.words import nearest
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.shapes.dims import written
from onnxsmith.graph.structure.type_texts import type_text

if TYPE_CHECKING:
    from onnxsmith.graph.operators.operator_methods import Operators

_METHODS = {
    "T": "Transpose", "permute": "Transpose", "view": "Reshape", "mean": "ReduceMean", "sum": "ReduceSum",
    "max": "ReduceMax", "min": "ReduceMin", "astype": "Cast", "to": "Cast", "type": "Cast",
}  # fmt: skip
"""Maps methods of numpy and torch to operators that have other names."""


class Tensor:
    """A tensor of a graph, or another value (a list, an optional, a map).

    Python's operators make nodes through `home`: `+ - * / // % ** @`, `-x`, `abs(x)`, `< <= > >= == !=`, `& | ^ ~`, and
    `x[1:, None, ..., -1]`. `==` compares elements; `a is b` asks whether two handles are the same.
    """

    __slots__ = ("_home", "value")

    def __init__(self, value: ir.Value, home: Operators) -> None:
        self.value = value
        self._home = home

    @property
    def name(self) -> str:
        """The name in the file."""
        return self.value.name or ""

    @property
    def dtype(self) -> str | None:
        """`float32`, `int64`, `bfloat16`, `string`; None if it is unknown."""
        return dtypes.shown(self.value.dtype)

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """For each dimension a number, a name or expression, or None if it is unknown. None without a known rank."""
        if self.value.shape is None:
            return None
        return written(self.value.shape)

    @property
    def rank(self) -> int | None:
        """The number of dimensions, None if it is unknown."""
        return None if self.value.shape is None else len(self.value.shape)

    def declare(self, dtype: Any, shape: Any = None) -> Tensor:
        """Declares the type of a result whose type is unknown: that of an operator without a schema. Returns this
        handle."""
        self._home.declare(self, dtype, shape)
        return self

    def __repr__(self) -> str:
        text = type_text(self.value)
        type_ = self.dtype if text.startswith("tensor(") else text
        dims = "…" if self.shape is None else ", ".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"Tensor({self.name}: {type_ or '?'}[{dims}])"

    def __hash__(self) -> int:
        return id(self.value)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_") or name in Tensor.__slots__:  # asked for by Python itself, perhaps before __init__
            raise AttributeError(name)
        near = nearest(_METHODS.get(name, name), dir(self._home))
        hint = f"; operators are methods of the builder: g.{near}(…)" if near else ""
        raise AttributeError(f"a tensor of the graph has no {name!r}{hint}", name=name, obj=self)

    def __bool__(self) -> NoReturn:
        raise self._not_python("a truth value", "g.If(condition, then, orelse) or g.Where(condition, a, b)")

    def __iter__(self) -> NoReturn:
        raise self._not_python("a sequence to iterate over", "g.Split(x, num_outputs=…, axis=…) or x[0], x[1]")

    def __len__(self) -> NoReturn:
        raise self._not_python("a sequence with a length", "x.shape[0], or g.Shape(x)[0] for the size at run time")

    def __int__(self) -> NoReturn:
        raise self._not_python("a Python number", 'g.Cast(x, to="int64")')

    def __float__(self) -> NoReturn:
        raise self._not_python("a Python number", 'g.Cast(x, to="float32")')

    __index__ = __int__

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, operands: Any = (), keywords: Any = None) -> NoReturn:
        """Refuses functions of torch, which asks this method before it computes."""
        name = str(getattr(function, "__name__", function)).strip("_")
        given = list(_flat((operands, keywords or {})))
        first = next(one for one in given if isinstance(one, Tensor))
        near = nearest(_METHODS.get(name, name), dir(first._home))
        if any(type(one).__module__.startswith("torch") for one in given):
            instead = "tensor.numpy() in place of torch's tensor: arrays become constants of the graph"
        else:
            instead = f"g.{near}(…)" if near else "an operator of the graph: g.Exp(x), not torch.exp(x)"
        raise first._not_python(f"a tensor of torch for torch.{name}", instead)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        row = (1, *(self.shape or ())[1:])
        if isinstance(index, int) and isinstance(value, int | float) and all(isinstance(size, int) for size in row):
            values = f"np.full({row}, {value}, np.{self.dtype or 'float32'})"
            fix = f"write {self.name} = g.ScatterND({self.name}, [[{index}]], {values})"
        else:
            fix = f"write {self.name} = g.Where(mask, values, {self.name}), where mask is True at these elements"
        raise problem(
            "build/symbolic",
            f"{self.name} is a tensor of the graph, whose elements cannot be assigned",
            where=self._home.blame(),
            why="each operator makes a new tensor",
            fix=fix,
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **_: Any) -> Any:
        """Makes a node for `array + x` and the like; refuses other functions of numpy."""
        from onnxsmith.graph.operators.arithmetic import UFUNCS, binary

        name = getattr(ufunc, "__name__", str(ufunc))
        if method == "__call__" and name in UFUNCS and len(operands) == 2:
            a, b = operands
            return binary(self._home, UFUNCS[name], a if a is self else b, b if a is self else a, swapped=a is not self)
        raise self._not_python(f"an array for np.{name}", "an operator of the graph: g.Exp(x), not np.exp(x)")

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise self._not_python("a numpy array", "an operator of the graph: g.Exp(x), not np.exp(x)")

    def _not_python(self, what: str, instead: str) -> Exception:
        return problem(
            "build/symbolic",
            f"{self.name} is a tensor of the graph, not {what}",
            where=self._home.blame(),
            why="its elements are not known before the model runs",
            fix=f"write {instead}",
        )

    def __getitem__(self, index: Any) -> Tensor:
        from onnxsmith.graph.operators.slicing import sliced

        return sliced(self._home, self, index)

    def _binary(self, op: str, other: Any, *, swapped: bool = False) -> Any:
        from onnxsmith.graph.operators.arithmetic import binary

        return binary(self._home, op, self, other, swapped=swapped)

    def __add__(self, other: Any) -> Any:
        return self._binary("Add", other)

    def __radd__(self, other: Any) -> Any:
        return self._binary("Add", other, swapped=True)

    def __sub__(self, other: Any) -> Any:
        return self._binary("Sub", other)

    def __rsub__(self, other: Any) -> Any:
        return self._binary("Sub", other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._binary("Mul", other)

    def __rmul__(self, other: Any) -> Any:
        return self._binary("Mul", other, swapped=True)

    def __truediv__(self, other: Any) -> Any:
        return self._binary("Div", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._binary("Div", other, swapped=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._binary("FloorDiv", other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._binary("FloorDiv", other, swapped=True)

    def __mod__(self, other: Any) -> Any:
        return self._binary("Mod", other)

    def __rmod__(self, other: Any) -> Any:
        return self._binary("Mod", other, swapped=True)

    def __pow__(self, other: Any) -> Any:
        return self._binary("Pow", other)

    def __rpow__(self, other: Any) -> Any:
        return self._binary("Pow", other, swapped=True)

    def __matmul__(self, other: Any) -> Any:
        return self._binary("MatMul", other)

    def __rmatmul__(self, other: Any) -> Any:
        return self._binary("MatMul", other, swapped=True)

    def __and__(self, other: Any) -> Any:
        return self._binary("And", other)

    def __rand__(self, other: Any) -> Any:
        return self._binary("And", other, swapped=True)

    def __or__(self, other: Any) -> Any:
        return self._binary("Or", other)

    def __ror__(self, other: Any) -> Any:
        return self._binary("Or", other, swapped=True)

    def __xor__(self, other: Any) -> Any:
        return self._binary("Xor", other)

    def __rxor__(self, other: Any) -> Any:
        return self._binary("Xor", other, swapped=True)

    def __lt__(self, other: Any) -> Any:
        return self._binary("Less", other)

    def __le__(self, other: Any) -> Any:
        return self._binary("LessOrEqual", other)

    def __gt__(self, other: Any) -> Any:
        return self._binary("Greater", other)

    def __ge__(self, other: Any) -> Any:
        return self._binary("GreaterOrEqual", other)

    def __eq__(self, other: Any) -> Any:
        return self._binary("Equal", other)

    def __ne__(self, other: Any) -> Any:
        return self._home.Not(self._binary("Equal", other))

    def __neg__(self) -> Any:
        return self._home.Neg(self)

    def __abs__(self) -> Any:
        return self._home.Abs(self)

    def __invert__(self) -> Any:
        return self._home.Not(self) if self.value.dtype == ir.DataType.BOOL else self._home.BitwiseNot(self)


def _flat(given: Any) -> Iterator[Any]:
    """Yields the arguments of a call, with those in lists and mappings."""
    if isinstance(given, list | tuple | dict):
        for one in given.values() if isinstance(given, dict) else given:
            yield from _flat(one)
    else:
        yield given
