"""A random graph while it is made: its values with their shapes at several sizes, its text.

Every choice is a draw from hypothesis, so that a graph that shows a fault is made smaller until nothing can be left
out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis.strategies as st
import numpy as np

SIZES = ({"n": 2, "m": 3}, {"n": 5, "m": 4})
"""What the symbols stand for. Each graph is valid at both; at 0 and 1 it need not be."""

Dim = tuple[int, ...]
"""A dimension's size at each of the `SIZES`."""

N, M = (tuple(size[name] for size in SIZES) for name in "nm")


def fixed(size: int) -> Dim:
    """A dimension that is the same always."""
    return (size,) * len(SIZES)


@dataclass(frozen=True)
class Value:
    """A tensor of the graph.

    `rounded` says that a rewrite may move its numbers by rounding, so that nothing may follow that makes much of it.
    `integers` are the elements of a small tensor that holds sizes, at each of the `SIZES`.
    """

    name: str
    dtype: str
    dims: tuple[Dim, ...]
    rounded: bool = False
    integers: tuple[tuple[int, ...], ...] | None = None

    @property
    def rank(self) -> int:
        return len(self.dims)

    def count(self, at: int) -> int:
        """Elements at one of the `SIZES`."""
        return int(np.prod([dim[at] for dim in self.dims], dtype=np.int64))


@dataclass
class Graph:
    """The main graph or a branch of it; a branch sees what is `outside`."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    opset: int = 20
    outside: Graph | None = None
    values: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)
    """Text by name."""
    made: list[int] = field(default_factory=lambda: [0])

    def integer(self, low: int, high: int) -> int:
        """A drawn integer, both ends included."""
        return int(self.draw(st.integers(low, high)))

    def choice(self, pool: Sequence[Any]) -> Any:
        """One of several."""
        return self.draw(st.sampled_from(pool))

    def flip(self) -> bool:
        """Yes or no."""
        return bool(self.draw(st.booleans()))

    def permutation(self, count: int) -> list[int]:
        """The numbers from 0 up in a drawn order."""
        return list(self.draw(st.permutations(range(count))))

    def fresh(self, stem: str = "v") -> str:
        """A name that nothing has."""
        self.made[0] += 1
        return f"{stem}{self.made[0]}"

    def visible(self) -> list[Value]:
        """All values that a node may read here."""
        return [*(self.outside.visible() if self.outside is not None else ()), *self.values]

    def pick(self, wanted: Callable[[Value], bool]) -> Value | None:
        """A value of the wanted kind, rather a late one."""
        found = [value for value in self.visible() if wanted(value)]
        return found[-1 - min(self.integer(0, 3 * len(found)) // 3, len(found) - 1)] if found else None

    def give(self, line: str, *values: Value) -> Value:
        """Notes a node, and what it makes."""
        self.lines.append(line)
        self.values += values
        return values[0]

    def node(
        self,
        op: str,
        reads: Sequence[Value | str],
        dtype: str,
        dims: Sequence[Dim],
        *,
        attributes: str = "",
        rounded: bool = False,
        integers: tuple[tuple[int, ...], ...] | None = None,
    ) -> Value:
        """A node with one result; what it reads carries its rounding on."""
        name = self.fresh()
        names = [value if isinstance(value, str) else value.name for value in reads]
        rounded |= any(value.rounded for value in reads if isinstance(value, Value))
        text = f"{name} = {op}{f'<{attributes}>' if attributes else ''}({', '.join(names)})"
        return self.give(text, Value(name, dtype, tuple(dims), rounded, integers))

    def constant(self, array: Any, dtype: str) -> Value:
        """An initializer or a Constant node; the same numbers may be there already, under another name."""
        array = np.asarray(array)
        numbers = ", ".join(_number(item, dtype) for item in array.ravel().tolist())
        shape = f"[{','.join(map(str, array.shape))}]" if array.ndim else ""
        name = self.fresh("k")
        dims = tuple(fixed(size) for size in array.shape)
        held = None
        if dtype in ("int64", "int32") and array.ndim <= 1:
            held = (tuple(int(number) for number in array.ravel()),) * len(SIZES)
        value = Value(name, dtype, dims, False, held)
        if self.outside is not None or self.flip():
            return self.give(f"{name} = Constant<value = {dtype}{shape} {{{numbers}}}>()", value)
        self.constants[name] = f"{dtype}{shape} {name} = {{{numbers}}}"
        self.values.append(value)
        return value

    def floats(self, shape: Sequence[int]) -> Value:
        """A constant of small floats, some of them neutral."""
        kind = self.choice(("any", "any", "ones", "zeros", "same"))
        count = int(np.prod(shape, dtype=np.int64))
        quarters = [self.integer(-8, 8) / 4 for _ in range(1 if kind == "same" else min(count, 6))] or [0.5]
        flat = {"ones": [1.0] * count, "zeros": [0.0] * count}.get(
            kind, [quarters[i % len(quarters)] for i in range(count)]
        )
        return self.constant(np.array(flat, np.float32).reshape(shape), "float")

    def sizes(self, numbers: Sequence[int]) -> Value:
        """A constant int64 vector."""
        return self.constant(np.array(numbers, np.int64), "int64")

    def text(self, outputs: Sequence[Value]) -> str:
        """The whole model."""
        given = ", ".join(f"{value.dtype}{_shape(value, number)} {value.name}" for number, value in enumerate(outputs))
        constants = f"<{', '.join(self.constants.values())}>" if self.constants else ""
        body = "\n    ".join(self.lines)
        head = f'<ir_version: {8 if self.opset < 20 else 10}, opset_import: ["": {self.opset}]>'
        return f"{head}\ng ({', '.join(self.inputs)}) => ({given})\n{constants} {{\n    {body}\n}}\n"


def _shape(value: Value, number: int) -> str:
    """Names for every dimension, which say nothing."""
    return f"[{','.join(f'o{number}_{axis}' for axis in range(value.rank))}]" if value.rank else ""


def _number(item: Any, dtype: str) -> str:
    return str(int(item)) if dtype in ("int64", "int32", "bool") else repr(float(item))
