"""`cast`, `constant`: change the dtype or the value of constants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import first_few, several
from onnxsmith.editor.edited_model import Work, dims
from onnxsmith.editor.node_placement import operators
from onnxsmith.editor.node_selectors import Takes
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import constant_tensors, dtypes
from onnxsmith.graph.structure import tensor_paths, walk

_LEAST = 2
"""Counts the dimensions that a weight needs to be cast by default. A choice: biases and scales are small and
sensitive."""


@dataclass(frozen=True)
class Cast(Step):
    """Stores the constants `tensor` as dtype `to` (bfloat16, float16, float8e4m3fn, …). A Cast behind each constant
    restores the dtype that its readers expect. Without `tensor`, all float initializers with two or more dimensions are
    stored in this dtype. The numbers change by the rounding of `to`; the report gives the largest change."""

    first = ("to", "tensor")

    to: str
    tensor: Any = None

    def apply(self, work: Work) -> str:
        dtype = dtypes.read(self.to, "")
        if not dtype.is_floating_point():
            raise problem(
                "edit/dtype",
                f"constants are not stored as {self.to}",
                why="{self.to} is not a float dtype",
                fix="use bfloat16, float16 or a float8 dtype; for integers quantise the model",
            )
        takes = Takes("float initializer", lambda value: _is_own(work, value) and _is_float(value))
        values = work.find.tensors(self.tensor, takes) if self.tensor is not None else _weights(work)
        values = [value for value in values if value.dtype != dtype or self.tensor is not None]
        if not values:
            raise _nothing_to_store(work)
        worst = max(_stored(work, value, dtype) for value in values)
        return (
            f"{several(len(values), 'constant')} as {dtypes.shown(dtype)}; the largest relative change is {worst:.2g}"
        )


def _nothing_to_store(work: Work) -> OnnxsmithError:
    """Returns the problem of a model without large float constants. Its fix names the small ones, if there are any."""
    small = [value.name or "" for value in work.model.graph.initializers.values() if _is_own(work, value)]
    small = [name for name in small if _is_float(work.model.graph.initializers[name])]
    if not walk.has_own_initializers(work.model):
        why, fix = (
            "before IR version 4, each initializer is also a graph input",
            'make the weights constants first: do = "drop-input", input = "*"',
        )
    elif small:
        why = f"smaller initializers are stored only if the step names them: {first_few(small, _SHOWN)}"
        fix = f'name a small initializer: tensor = "{small[0]}"'
    else:
        why, fix = (
            "the model has no float initializers",
            "leave the step out: the model has nothing to store in fewer bits",
        )
    return problem("edit/no-match", "there is no float initializer with two dimensions or more", why=why, fix=fix)


_SHOWN = 4
"""Limits the constants that an error names. A choice: one line."""


def _weights(work: Work) -> list[ir.Value]:
    return [
        value
        for value in work.model.graph.initializers.values()
        if _is_own(work, value)
        and _is_float(value)
        and value.const_value is not None
        and len(dims(value.const_value)) >= _LEAST
        and value.uses()
    ]


def _is_own(work: Work, value: ir.Value) -> bool:
    """Whether the value is an initializer of the main graph and not also an input, whose dtype the caller relies on."""
    return work.model.graph.initializers.get(value.name or "") is value and not value.is_graph_input()


def _is_float(value: ir.Value) -> bool:
    return value.const_value is not None and value.const_value.dtype.is_floating_point()


_SHOWN = 5
"""Limits the names that a fix lists. A choice: one line."""


def _one_of(names: Iterable[str]) -> str:
    """Returns the advice to take one of a few initializers; nothing if there are none, or too many to name."""
    few = list(names)
    return f"write {' or '.join(map(repr, few))}" if 0 < len(few) <= _SHOWN else ""


def _stored(work: Work, value: ir.Value, dtype: ir.DataType) -> float:
    """Stores one constant as `dtype`. Returns the largest relative change of an element."""
    name, tensor = value.name or "", value.const_value
    graph = work.model.graph
    if tensor is None or not _is_own(work, value):
        near = tensor_paths.near(name, list(graph.initializers))
        raise problem(
            "edit/not-constant",
            f"{name!r} is not an initializer of the main graph",
            why="only initializers of the main graph can be stored in another dtype",
            fix=_one_of(near or graph.initializers) or "leave the step out",
        )
    if not tensor.dtype.is_floating_point():
        raise problem(
            "edit/dtype",
            f"{name!r} is of {tensor.dtype.name.lower()}",
            why="this step stores only float constants in another dtype",
            fix="leave it out",
        )
    before = tensor.numpy().astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = tensor.numpy().astype(dtype.numpy())
    after = narrow.astype(np.float64)
    if not np.array_equal(np.isfinite(before), np.isfinite(after)):
        raise problem(
            "edit/overflow",
            f"{name!r} has values that {dtypes.shown(dtype)} cannot hold",
            why=f"the largest magnitude in the tensor is {np.max(np.abs(before)):.3g}",
            fix="use bfloat16, which has the range of float32",
        )
    readers = [(use.node, use.idx) for use in value.uses()]
    was_output = [index for index, one in enumerate(graph.outputs) if one is value]
    old = tensor.dtype
    made = ir.tensor(narrow, dtype=dtype, name=name)
    value.const_value, value.type = made, ir.TensorType(dtype)
    make = operators(work, graph, graph[0] if len(graph) else None, f"the cast of {name}", [value])
    wide = make.Cast(value, to=int(old)).value
    wide.name = work.names.free(f"{name}.{old.name.lower()}")
    for node, index in readers:
        node.replace_input_with(index, wide)
    for index in was_output:
        graph.outputs[index] = wide
    work.change(wide)
    size = np.abs(before)
    relevant = np.isfinite(before) & (size > 0)
    return float(np.max(np.abs(after - before)[relevant] / size[relevant], initial=0.0))


@dataclass(frozen=True)
class Constant(Step):
    """Gives the constant `tensor` (an initializer, or the result of a Constant node) a new `value`: a number, a list or
    an array. Numbers and lists take the constant's dtype, and a number fills its shape. An array of another dtype is
    refused, because readers of the constant expect its dtype. With `at`, a list of places such as `[[0, 3], [1, 2]]`,
    only these elements change, and `value` has one number for each place, or one for all."""

    first = ("tensor", "value")

    tensor: Any
    value: Any
    at: Any = None

    def apply(self, work: Work) -> str:
        value = work.find.tensor(self.tensor, Takes("constant", _is_constant))
        held = const_tensor(value)
        if held is None:
            raise problem(
                "edit/not-constant",
                f"{value.name!r} is not a constant",
                why="it is computed"
                if value.producer() is not None
                else "the tensor is an input, and its value comes from the caller or the loop",
                fix=_one_of(work.model.graph.initializers) or "`onnxsmith inspect MODEL --tensors` lists the constants",
            )
        made = self._made(held, value.name or "") if self.at is None else self._changed(held, value.name or "")
        made.name = value.name
        node = value.producer()
        if node is None:
            value.const_value = made
        else:
            node.attributes.clear()
            node.attributes.add(ir.AttrTensor("value", made))
            value.const_value = None
        value.type, value.shape = ir.TensorType(made.dtype), ir.Shape(dims(made))
        work.change(value)
        if value.is_graph_input():
            work.notes.append(
                f"{value.name} is also a graph input: a caller can give another value, which then replaces the new "
                "constant"
            )
        was = "" if dims(held) == dims(made) else f", shape {list(dims(held))} → {list(dims(made))}"
        few = "" if self.at is None else f", {several(len(self.at), 'element')}"
        return f"{value.name}{was}{few}"

    def _changed(self, held: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
        """Returns the constant with other elements at the places."""
        array, numbers = held.numpy().copy(), self._numbers(held, name).numpy()
        try:
            array[self._places(array.ndim)] = numbers
        except (TypeError, ValueError, IndexError) as error:
            raise problem(
                "edit/step-argument",
                f"the places or the numbers do not fit {name}, whose shape is {dims(held)}",
                where=name,
                why=str(error),
                fix="give a list of places with one index for each axis, at = [[0, 3], [1, 2]], and one number for "
                "each place",
            ) from error
        return ir.tensor(array, dtype=held.dtype)

    def _places(self, axes: int) -> tuple[np.ndarray[Any, Any], ...]:
        """Returns the indices of each axis. Raises ValueError if they are no whole numbers, or if a place occurs
        twice."""
        places = np.asarray(self.at)
        if places.dtype.kind not in "iu" or places.shape not in ((len(places), axes), (len(places),) * (axes == 1)):
            raise ValueError("a place consists of one whole number for each axis")
        if len(np.unique(places, axis=0)) < len(places):
            raise ValueError("a place occurs twice")
        return tuple(places.reshape(len(places), axes).T)

    def _made(self, held: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
        made = self._numbers(held, name)
        if not constant_tensors.is_array(self.value) and not isinstance(self.value, list | tuple) and dims(held):
            full = np.broadcast_to(made.numpy(), dims(held)).copy()
            return ir.tensor(full, dtype=held.dtype)
        return made

    def _numbers(self, held: ir.TensorProtocol, name: str) -> ir.TensorProtocol:
        """Returns the given numbers in the constant's dtype."""
        if constant_tensors.is_array(self.value):
            made = constant_tensors.of_array(self.value, f"the value of {name}", "")
            if made.dtype != held.dtype:
                raise problem(
                    "edit/dtype",
                    f"{name} has the dtype {held.dtype.name.lower()}, but the array has {made.dtype.name.lower()}",
                    why="the nodes that read the constant expect its dtype",
                    fix=f'convert the array: value.astype("{held.dtype.numpy().name}")',
                )
            return made
        return constant_tensors.of_python(self.value, held.dtype, f"the value of {name}", "")


def _is_constant(value: ir.Value) -> bool:
    return const_tensor(value) is not None
