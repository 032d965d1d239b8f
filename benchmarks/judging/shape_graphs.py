"""Random shape computations: integers that follow from sizes, constants and inputs, and what is done with them.

A graph computes with scalars and vectors of integers, then gives some of them out and uses others as targets, bounds
and repeats of tensors. Constants stand near 0, 2^31 and 2^63, divisors are guarded or not, dimensions may be empty.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_SMALL = (-7, -3, -2, -1, 0, 0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 8, 12)
_LARGE = (
    *(2**31 - 1, 2**31, 2**31 + 7, 2**30, 2**32, 2**32 + 1, -(2**31), -(2**31) - 1),
    *(2**24 + 1, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), 2**61 + 1),
)  # fmt: skip
_MOST = 100
"""No dimension of a tensor is made larger than this."""
DTYPES = {"int64": TensorProto.INT64, "int32": TensorProto.INT32, "bool": TensorProto.BOOL}
FLOATS = {"float": TensorProto.FLOAT, "double": TensorProto.DOUBLE}


@dataclass(frozen=True)
class Integers:
    """A scalar (`length` None) or a vector of integers or booleans. No element is further from 0 than `bound`."""

    name: str
    dtype: str
    length: int | None
    bound: int


@dataclass(frozen=True)
class Tensor:
    """A float tensor, whose dimensions are not above `bound`."""

    name: str
    rank: int
    bound: int


@dataclass
class ShapeGraph:
    """A graph while it is made."""

    seed: int
    opset: int = 18
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    initializers: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    integers: list[Integers] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    taken: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def model(self) -> onnx.ModelProto:
        """The model; integers and tensors that were made last are its outputs."""
        read = {name for node in self.nodes for name in node.input}
        made = [one for one in (*self.integers, *self.tensors) if one.name.startswith("v")]
        last = [one for one in made if one.name not in read] or made[-1:]
        outputs = [helper.make_tensor_value_info(one.name, self._type(one), None) for one in last]
        graph = helper.make_graph(self.nodes, "g", self.inputs, outputs, self.initializers)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)

    def _type(self, one: Integers | Tensor) -> int:
        return TensorProto.FLOAT if isinstance(one, Tensor) else DTYPES[one.dtype]

    def choice(self, pool: Any) -> Any:
        """One of several."""
        return self.random.choice(list(pool))

    def flip(self, share: float = 0.5) -> bool:
        """Yes in this share of cases."""
        return self.random.random() < share

    def fresh(self, stem: str = "v") -> str:
        """A new name."""
        self.taken += 1
        return f"{stem}{self.taken}"

    def node(self, op: str, inputs: list[str], **attributes: Any) -> str:
        """Adds a node of one output and gives the output's name."""
        name = self.fresh()
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, array: Any, dtype: str = "int64") -> Integers:
        """An initializer, or a Constant node."""
        found = np.asarray(array, dtype)
        name = self.fresh("c")
        if self.flip(0.8):
            self.initializers.append(numpy_helper.from_array(found, name))
        else:
            self.nodes.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(found)))
        bound = max((abs(int(number)) for number in found.ravel()), default=0)
        return Integers(name, dtype, None if found.ndim == 0 else len(found), bound)

    def put(
        self, op: str, inputs: list[str], dtype: str, length: int | None, bound: int, **attributes: Any
    ) -> Integers:
        """Adds a node that gives integers."""
        made = Integers(self.node(op, inputs, **attributes), dtype, length, bound)
        self.integers.append(made)
        return made

    def tensor(self, op: str, inputs: list[str], rank: int, bound: int, **attributes: Any) -> Tensor:
        """Adds a node that gives a tensor."""
        made = Tensor(self.node(op, inputs, **attributes), rank, bound)
        self.tensors.append(made)
        return made

    def pick(self, suits: Callable[[Integers], bool] = lambda _: True) -> Integers:
        """Integers that suit, rather those that were made late; a dimension of a tensor where there are none."""
        found = [one for one in self.integers if suits(one)]
        if not found:
            return self.size(self.choice(self.tensors))
        return found[max(self.random.randrange(len(found)), self.random.randrange(len(found)))]

    def number(self, large: float = 0.15) -> int:
        """A constant."""
        return int(self.choice(_LARGE if self.flip(large) else _SMALL))

    def size(self, tensor: Tensor, axis: int | None = None) -> Integers:
        """One dimension, as a scalar or a vector of one."""
        axis = self.random.randrange(tensor.rank) if axis is None else axis
        if self.flip(0.3):
            return self.put("Shape", [tensor.name], "int64", 1, tensor.bound, start=axis, end=axis + 1)
        whole = self.put("Shape", [tensor.name], "int64", tensor.rank, tensor.bound)
        index = axis - tensor.rank if self.flip(0.3) else axis
        place = self.constant([index] if self.flip() else index)
        return self.put("Gather", [whole.name, place.name], "int64", place.length, tensor.bound, axis=0)

    def scalar(self, one: Integers) -> Integers:
        """As a scalar: the element of a vector of one, or one element of several."""
        if one.length is None:
            return one
        if one.length == 1 and self.flip():
            return self.put("Squeeze", [one.name], one.dtype, None, one.bound)
        index = self.random.randrange(max(1, one.length))
        return self.put("Gather", [one.name, self.constant(index).name], one.dtype, None, one.bound, axis=0)

    def vector(self, one: Integers) -> Integers:
        """As a vector."""
        if one.length is not None:
            return one
        if self.flip():
            return self.put("Unsqueeze", [one.name, self.constant([0]).name], one.dtype, 1, one.bound)
        return self.put("Reshape", [one.name, self.constant([self.choice((1, -1))]).name], one.dtype, 1, one.bound)

    def cast(self, one: Integers, dtype: str) -> Integers:
        """To another dtype, if it is another."""
        if one.dtype == dtype:
            return one
        bound = 1 if dtype == "bool" else min(one.bound, 2**31) if dtype == "int32" else one.bound
        return self.put("Cast", [one.name], dtype, one.length, bound, to=DTYPES[dtype])

    def small(self, one: Integers) -> Integers:
        """An int64 that is no dimension too many: as it is, where it is small, else clamped or its remainder."""
        one = self.cast(one, "int64")
        if one.bound <= _MOST // 4:
            return one
        most = self.random.randint(1, 8)
        if self.flip():
            return self.put("Mod", [one.name, self.constant(most).name], "int64", one.length, most)
        upper = self.put("Min", [one.name, self.constant(most).name], "int64", one.length, one.bound)
        return self.put("Max", [upper.name, self.constant(-self.random.randint(0, 3)).name], "int64", one.length, most)
