"""`dtype`, `layout`: change the types of graph inputs and outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.node_placement import import_operators, port
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.operators import dtypes
from onnxsmith.graph.structure.fresh import Names


@dataclass(frozen=True)
class Dtype(Step):
    """Changes the dtype of the graph input `input`, or of the graph output `output`, to `to` (int32, float16, …), by a
    Cast next to it. Everything inside keeps its dtype. For the comparison, the original gets the same Casts, and inputs
    in the new dtype."""

    first = ("input", "to")

    input: Any = None
    to: str = ""
    output: Any = None

    def apply(self, work: Work) -> str:
        if (self.input is None) == (self.output is None) or not self.to:
            raise problem(
                "edit/step-argument",
                "dtype needs one of input and output, and a dtype in `to`",
                fix='write input = "ids", to = "int32"',
            )
        graph, is_input = work.model.graph, self.input is not None
        value = port(list(graph.inputs if is_input else graph.outputs), self.input if is_input else self.output)
        new = dtypes.read(self.to, "")
        work.infer()
        old = value.dtype
        _refuse(value, old, new)
        assert old is not None
        name = value.name or ""
        if is_input:
            original = work.inputs.get(name) or name
            renamed, inner = work.names.free(f"{name}_cast"), _inner_name(work, original)
            _cast_input(work.model, name, new, renamed)
            if value.is_graph_output():  # one name cannot be an input of one dtype and an output of another
                work.outputs[renamed] = inner if work.outputs.pop(name, None) else None
                work.notes.append(
                    f"the output {name} is now called {renamed}, because the input {name} has another dtype now"
                )
            work.adapt_reference.append(lambda model: _cast_input(model, original, new, inner))
            work.move_originals(original, inner)
        else:
            original = work.outputs.get(name) or name
            inner = _inner_name(work, original)
            _cast_output(work.model, name, new)
            work.adapt_reference.append(lambda model: _cast_output(model, original, new, inner))
            work.move_originals(original, inner)
        return f"{'input' if is_input else 'output'} {name}: {dtypes.shown(old)} → {dtypes.shown(new)}"


def _inner_name(work: Work, name: str) -> str:
    """Returns a name, unique to the step, for the original's tensor at a port with a Cast."""
    return f"{name} (in its dtype before {work.step or 'the step'})"


def _refuse(value: ir.Value, old: ir.DataType | None, new: ir.DataType) -> None:
    plain = isinstance(value.type, ir.TensorType) and old not in (None, ir.DataType.STRING)
    if plain and old != new and new != ir.DataType.STRING and value.const_value is None:
        return
    why = (
        f"it is of {dtypes.shown(old)}"
        if plain
        else "the input or output is not a tensor of numbers, or its dtype is unknown"
    )
    if value.const_value is not None:
        why = "the input has a default value, which would also need another dtype"
    raise problem(
        "edit/dtype",
        f"the dtype of {value.name} cannot become {dtypes.shown(new)}",
        where=value.name or "",
        why=why,
        fix="leave the step out" if old == new else "choose another port or dtype; `drop-input` fixes a default",
    )


def _cast_input(model: ir.Model, name: str, dtype: ir.DataType, inner: str) -> ir.Model:
    """Replaces an input by an input of the new dtype with a Cast behind it. The old value becomes the result of the
    Cast, called `inner`. So all readers of the input, also readers in bodies, read the same value as before."""
    import_operators(model)
    graph = model.graph
    value = next(value for value in graph.inputs if value.name == name)
    assert value.dtype is not None
    made = ir.Value(
        name=name, type=ir.TensorType(dtype), shape=value.shape, doc_string=value.doc_string,
        metadata_props=dict(value.metadata_props),
    )  # fmt: skip
    graph.inputs[list(graph.inputs).index(value)] = made
    value.name = inner
    node = ir.Node("", "Cast", [made], [ir.AttrInt64("to", int(value.dtype))], outputs=[value])
    if len(graph):
        graph.insert_before(graph[0], node)
    else:
        graph.append(node)
    return model


def _cast_output(model: ir.Model, name: str, dtype: ir.DataType, inner: str = "") -> ir.Model:
    """Makes the result of a Cast the output, under the output's name unless an input has that name. The tensor before
    the Cast is called `inner`, by default a free name."""
    import_operators(model)
    graph = model.graph
    value = next(value for value in graph.outputs if value.name == name)
    made = ir.Value(name=name, type=ir.TensorType(dtype), shape=value.shape)
    if value.is_graph_input() or value.is_initializer():
        made.name = Names(model).free(f"{name}_cast")
    else:
        value.name = inner or Names(model).free(f"{name}_before_cast")
    graph.append(ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(dtype))], outputs=[made]))
    _replace_output(graph, value, made)
    return model


def _replace_output(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    """Replaces a graph output wherever the model lists it: a model may list one twice."""
    for index, one in enumerate(graph.outputs):
        if one is old:
            graph.outputs[index] = new


@dataclass(frozen=True)
class Layout(Step):
    """Changes the layout of the graph input `input`, or of the graph output `output`, by a Transpose next to it. `to`
    is a layout, `NHWC` (from `NCHW`) or `NCHW` (from `NHWC`), or the axes in their new order, "0,2,3,1". The numbers
    stay the same: the original is compared on the inputs in their old order."""

    first = ("input", "to")

    input: Any = None
    to: str | list[int] | tuple[int, ...] = ""
    output: Any = None

    def apply(self, work: Work) -> str:
        if (self.input is None) == (self.output is None) or not len(self.to):
            raise problem(
                "edit/step-argument",
                "layout needs one of input and output, and a layout in `to`",
                fix='write input = "x", to = "NHWC"',
            )
        graph, is_input = work.model.graph, self.input is not None
        value = port(list(graph.inputs if is_input else graph.outputs), self.input if is_input else self.output)
        work.infer()
        if not isinstance(value.type, ir.TensorType) or value.shape is None:
            raise problem(
                "edit/layout",
                f"the rank of {value.name} is not known",
                where=value.name or "",
                why="it is no tensor"
                if value.type is not None and not isinstance(value.type, ir.TensorType)
                else "the file declares no shape, and shape inference finds none",
                fix="choose a tensor, or declare its shape in Python, before the step: "
                f'`m.tensor("{value.name}").value.shape = onnx_ir.Shape(["N", "C", "H", "W"])`',
            )
        axes = permutation(self.to, len(value.shape), value.name or "")
        before, name = str(value.shape), value.name or ""
        if is_input:
            _permute_input(work, value, axes)
        else:
            _permute_output(work, value, axes)
        return f"{'input' if is_input else 'output'} {name}: {before} → {_permuted(value.shape, axes)}"


def _permute_input(work: Work, value: ir.Value, axes: tuple[int, ...]) -> None:
    """Makes a new input of the permuted shape. The old value becomes the result of a Transpose, so that all its
    readers, also readers in bodies, read the same value as before."""
    graph, name = work.model.graph, value.name or ""
    original = work.inputs.get(name)
    port = ir.Value(
        name=name,
        type=value.type,
        shape=_permuted(value.shape, axes),
        doc_string=value.doc_string,
        metadata_props=dict(value.metadata_props),
    )
    _move_default(graph, value, port, axes)
    graph.inputs[list(graph.inputs).index(value)] = port
    value.name = work.names.free(f"{name}_transposed")
    _transpose(graph, port, value, [axes.index(axis) for axis in range(len(axes))], first=True)
    if value.is_graph_output():  # one name cannot be an input of one layout and an output of another
        work.outputs[value.name] = work.outputs.pop(name, None)
        work.notes.append(
            f"the output {name} is now called {value.name}, because the input {name} has another layout now"
        )
    work.adapt_candidate.append(lambda model: _old_input(model, _now(work.inputs, original, name), axes))


def _permute_output(work: Work, value: ir.Value, axes: tuple[int, ...]) -> None:
    """Makes the result of a Transpose the graph output. The result takes over the name, unless an input has this
    name."""
    graph, name = work.model.graph, value.name or ""
    made = ir.Value(name=name, type=value.type, shape=_permuted(value.shape, axes))
    if value in graph.inputs:
        made.name = work.names.free(f"{name}_transposed")
        work.notes.append(f"the output {name} is now called {made.name}, because the input {name} has another layout")
        work.outputs[made.name] = work.outputs.pop(name, None)
    else:
        value.name = work.names.free(f"{name}_before_transpose")
    _transpose(graph, value, made, list(axes), first=False)
    _replace_output(graph, value, made)
    now = made.name or ""
    work.forget_shape(work.outputs.get(now) or "")
    original = work.outputs.get(now)
    work.adapt_candidate.append(lambda model: _old_output(model, _now(work.outputs, original, now), axes))


def _transpose(graph: ir.Graph, value: ir.Value, result: ir.Value, perm: list[int], *, first: bool) -> None:
    node = ir.Node("", "Transpose", [value], [ir.AttrInt64s("perm", perm)], outputs=[result])
    if first and len(graph):
        graph.insert_before(graph[0], node)
    else:
        graph.append(node)


def _move_default(graph: ir.Graph, old: ir.Value, new: ir.Value, axes: tuple[int, ...]) -> None:
    """Moves the default of a graph input to the input that replaces it, with its axes permuted."""
    name, default = old.name or "", old.const_value
    graph.initializers.pop(name, None)
    old.const_value = None
    if default is not None:
        new.const_value = ir.tensor(np.ascontiguousarray(default.numpy().transpose(axes)), default.dtype, name=name)
        graph.initializers[name] = new


def _permuted(shape: ir.Shape | None, axes: tuple[int, ...]) -> ir.Shape:
    assert shape is not None
    return ir.Shape([shape[axis] for axis in axes], denotations=[shape.get_denotation(axis) for axis in axes])


def _now(ports: Mapping[str, str | None], original: str | None, name: str) -> str:
    """Returns the current name of the port, because a later step may have renamed it."""
    return next((now for now, old in ports.items() if original is not None and old == original), name)


def _old_input(model: ir.Model, name: str, axes: tuple[int, ...]) -> ir.Model:
    """Returns the edited model with the old layout of an input: the model permutes this input itself."""
    graph = model.graph
    port = next((value for value in graph.inputs if value.name == name), None)
    if port is None:
        return model
    back = tuple(map(int, np.argsort(axes)))
    old = ir.Value(name=name, type=port.type, shape=_permuted(port.shape, back))
    _move_default(graph, port, old, back)
    graph.inputs[list(graph.inputs).index(port)] = old
    port.name = Names(model).free(f"{name}_new_layout")
    _transpose(graph, old, port, list(axes), first=True)
    return model


def _old_output(model: ir.Model, name: str, axes: tuple[int, ...]) -> ir.Model:
    """Returns the edited model with the old layout of an output: the model permutes its result back."""
    graph = model.graph
    new = next((value for value in graph.outputs if value.name == name), None)
    if new is None:
        return model
    back = tuple(map(int, np.argsort(axes)))
    old = ir.Value(name=name, type=new.type, shape=_permuted(new.shape, back))
    new.name = Names(model).free(f"{name}_new_layout")
    _transpose(graph, new, old, list(back), first=False)
    _replace_output(graph, new, old)
    return model


_USUAL = {3: "NWC", 4: "NHWC", 5: "NDHWC"}
"""Maps ranks to channels-last layouts, as TensorFlow and oneDNN name them."""


def permutation(layout: str | Sequence[int], rank: int, where: str) -> tuple[int, ...]:
    """Returns the axes in their new order, as in numpy.transpose: new axis i is old axis `permutation[i]`.

    A layout in letters implies the old layout, which has C at the other end of the spatial axes: `NHWC` replaces
    `NCHW`, `NCHW` replaces `NHWC`, `HWC` replaces `CHW`.

    Raises:
        OnnxsmithError: `edit/layout` if the layout does not fit the rank, has no usual counterpart, or changes nothing.
    """
    if isinstance(layout, str) and not re.fullmatch(r"\s*\d+(\s*,\s*\d+)*\s*", layout):
        axes = _of_letters(layout.strip().upper(), rank, where)
    else:
        axes = tuple(int(one) for one in (layout.split(",") if isinstance(layout, str) else layout))
        if sorted(axes) != list(range(rank)):
            raise _refusal(
                f"{list(axes)} is not an order of {rank} axes",
                where,
                "an order names each axis once, counted from 0",
                rank,
            )
    if axes == tuple(range(rank)):
        raise _refusal("the layout changes nothing", where, "the axes stay in their order", rank)
    return axes


def _of_letters(layout: str, rank: int, where: str) -> tuple[int, ...]:
    if not layout.isalpha() or len(set(layout)) != len(layout):
        raise _refusal(
            f"{layout!r} is no layout", where, "a layout is one letter for each axis, or a permutation", rank
        )
    if len(layout) != rank:
        raise _refusal(
            f"{layout} names {len(layout)} axes, but the tensor has {rank}", where, "each axis needs one letter", rank
        )
    batch, rest = ("N", layout[1:]) if layout[0] == "N" else ("", layout)
    if rest.endswith("C"):
        before = f"{batch}C{rest[:-1]}"
    elif rest.startswith("C"):
        before = f"{batch}{rest[1:]}C"
    else:
        why = "the letter C marks the channels: it has to be the last axis, or the axis behind N"
        raise _refusal(f"the old layout that belongs to {layout} is not known", where, why, rank)
    return tuple(before.index(letter) for letter in layout)


def _refusal(what: str, where: str, why: str, rank: int) -> OnnxsmithError:
    # Rank 2 has one other order; ranks 0 and 1 have none.
    usual = _USUAL.get(rank)
    axes = ",".join(map(str, (0, *range(2, rank), 1) if rank > 2 else range(rank - 1, -1, -1)))
    if rank < 2:
        return problem("edit/layout", what, where=where, why=f"{why}; a tensor of rank {rank} has one layout only")
    if rank == 2:
        fix = f"leave {where} as it is: a tensor of two axes has only one layout; {axes} swaps the two axes"
        return problem("edit/layout", what, where=where, why=why, fix=fix)
    return problem(
        "edit/layout", what, where=where, why=why, fix=f"write {usual}, or {axes}" if usual else f"write {axes}"
    )
