"""Defines `set_dim`, which makes dimensions of graph inputs symbolic, or fixes them to a size."""

from __future__ import annotations

import re
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.editor.dims import factors
from onnxsmith.editor.dims.dimension_propagation import Opening
from onnxsmith.editor.dims.requests import Request, requests
from onnxsmith.editor.dims.row_comparison import Rows
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.structure import walk
from onnxsmith.graph.surgery.inlining import inlined

_CALL = re.compile(r"[A-Za-z_]\w*\(")


@dataclass(frozen=True)
class SetDim(Step):
    """Gives dimensions of graph inputs a name or a size. `dims` is one or several texts such as "x:0=batch,2=height",
    "x:0=1" or "batch=1". A name makes a fixed dimension symbolic: constants that hold its size are replaced. At the old
    size the outputs keep their numbers. At other sizes each row must be what the original computes. A dynamic dimension
    without a name only gets the name."""

    first = ("dims",)

    dims: str | list[str] | tuple[str, ...]

    def apply(self, work: Work) -> str:
        texts = [self.dims] if isinstance(self.dims, str) else list(self.dims)
        found = requests(work.model, texts)
        if not found:
            raise problem(
                "edit/step-argument", "the dimensions have these names and sizes already", fix="leave the step out"
            )
        opened = [request for request in found if isinstance(request.new, str) and request.was is not None]
        fixed = [request for request in found if isinstance(request.new, int)]
        named = [request for request in found if isinstance(request.new, str) and request.was is None]
        if fixed:
            _fix(work, fixed)
        if named:
            _replace(work, named)
        if opened:
            _open(work, opened)
        return ", ".join(
            f"{one.value.name} axis {one.axis}: {one.was if one.was is not None else '?'} → {one.new}" for one in found
        )


def _fix(work: Work, found: list[Request]) -> None:
    """Gives symbolic dimensions a size, also in the reference of the comparison."""
    _replace(work, found)
    work.fix_symbols({one.was: one.new for one in found if isinstance(one.was, str) and isinstance(one.new, int)})


def _replace(work: Work, found: list[Request]) -> None:
    """Writes the new sizes and names into the inputs, also in the reference of the comparison."""
    new: dict[str, dict[int, int | str]] = {}
    for one in found:
        new.setdefault(work.inputs.get(one.value.name or "") or "", {})[one.axis] = one.new
    _resize({one.value.name or "": one.value for one in found}, {one.value.name or "": {} for one in found}, found)
    work.reshape(*(one.value for one in found))

    def adapt(model: ir.Model) -> ir.Model:
        for value in model.graph.inputs:
            if value.name in new and value.shape is not None:
                dims = list(value.shape)
                value.shape = ir.Shape([new[value.name].get(axis, dim) for axis, dim in enumerate(dims)])
        return model

    work.adapt_reference.append(adapt)


def _resize(values: dict[str, ir.Value], new: dict[str, dict[int, int | str]], found: list[Request]) -> None:
    for one in found:
        new[one.value.name or ""][one.axis] = one.new
    for name, value in values.items():
        assert value.shape is not None
        value.shape = ir.Shape([new[name].get(axis, dim) for axis, dim in enumerate(value.shape)])


def _open(work: Work, found: list[Request]) -> None:
    """Makes fixed dimensions symbolic."""
    found = _without_functions(work, found)
    work.infer()
    _forget_unreadable(work)
    static = {
        value: tuple(dim if isinstance(dim, int) else None for dim in value.shape)
        for graph in walk.graphs(work.model)
        for value in (*graph.inputs, *graph.initializers.values(), *(one for node in graph for one in node.outputs))
        if value.shape is not None
    }
    opened: dict[ir.Value, dict[int, str]] = {}
    for one in found:
        opened.setdefault(one.value, {})[one.axis] = str(one.new)
    work.reshape(*opened)
    work.resize()
    opening = Opening(work, opened, static)
    opening.run()
    work.notes.extend(opening.notes)
    sizes = {str(one.new): int(one.was) for one in found if one.was is not None}
    for symbol, size in sizes.items():
        places = {value: axis for value, axes in opened.items() for axis, name in axes.items() if name == symbol}
        rows = Rows(work, symbol, size, {value.name or "": axis for value, axis in places.items()}, {}, [], sizes)
        for value in work.model.graph.outputs:
            dims = opening.dims(value)
            axis = factors.led_by(dims, symbol) if dims is not None else None
            if axis is not None:
                rows.outputs[value.name or ""] = axis
            elif opening.is_reached(value):
                rows.others.append(value.name or "")
        work.also.append(rows.compared)


def _forget_unreadable(work: Work) -> None:
    """Removes inferred sizes that contain functions, such as `Broadcast(a, b)`. The shape engine writes such sizes but
    cannot read them all."""
    for graph in walk.graphs(work.model):
        for value in (value for node in graph for value in node.outputs if value.shape is not None):
            for axis, dim in enumerate(value.shape or ()):
                text = dim.value if isinstance(dim, ir.SymbolicDim) else None
                if text is not None and _CALL.search(text):
                    dims = list(value.shape or ())
                    dims[axis] = ir.SymbolicDim(None)
                    value.shape = ir.Shape(dims)


def _without_functions(work: Work, found: list[Request]) -> list[Request]:
    """Inlines local functions, because a constant in a function may serve several calls."""
    if not work.model.functions:
        return found
    names = [value.name for value in work.model.graph.inputs]
    places = [names.index(one.value.name) for one in found]
    model, trouble = inlined(work.model)
    if trouble:
        raise problem(
            "edit/not-inlined", "the functions cannot be inlined", why=trouble, fix="export without local functions"
        )
    work.become(model)
    inputs = work.model.graph.inputs
    return [Request(inputs[at], one.axis, one.new, one.was) for at, one in zip(places, found, strict=True)]
