"""Gives dimensions of graph inputs a name or a size."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.editor.dims import computed_operands, factors
from onnxsmith.editor.dims.default_inputs import as_constants
from onnxsmith.editor.dims.dimension_propagation import CHOICES, Choice, Opening
from onnxsmith.editor.dims.requests import Request, requests
from onnxsmith.editor.dims.row_comparison import Rows, agrees
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps.base import Step
from onnxsmith.editor.steps.inputs_and_outputs import DropInput
from onnxsmith.graph.shapes.dims import evaluate, names_in, names_of
from onnxsmith.graph.shapes.symbolic_inference import inferred_outputs
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.model_copy import cloned
from onnxsmith.graph.structure.signature import is_symbol
from onnxsmith.graph.surgery.inlining import inlined
from onnxsmith.graph.surgery.names import fix_symbols

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
        sizes: dict[str, int] = {}
        for value in model.graph.inputs:
            if value.name in new and value.shape is not None:
                dims = list(value.shape)
                value.shape = ir.Shape([new[value.name].get(axis, dim) for axis, dim in enumerate(dims)])
                pairs = zip(dims, value.shape, strict=True)
                sizes |= {
                    old.value: size
                    for old, size in pairs
                    if not isinstance(old, int) and isinstance(size, int) and old.value
                }
        left = {str(dim) for value in model.graph.inputs for dim in value.shape or ()}
        fix_symbols(model, {name: size for name, size in sizes.items() if name not in left and is_symbol(name)})
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
    before = cloned(work.model)
    first: OnnxsmithError | None = None
    followed: Choice | None = None
    for choice in CHOICES:
        try:
            opening, replaced = _by(work, found, choice)
        except OnnxsmithError as error:
            if error.problem.id != "edit/frozen-dim":
                raise
            first = first or error
        else:
            is_doubtful = opening.doubts != Choice()
            if not is_doubtful or all(agrees(before, work.model, rows, _SEED) for rows in _rows(work, opening, found)):
                break
            followed = followed or (None if choice.turned else choice)
        found = _restored(work, before, found)
    else:
        if followed is None and first is not None:
            raise first
        opening, replaced = _by(work, found, followed or CHOICES[0])  # the comparison says what is wrong
    for name in replaced:
        DropInput(name).apply(work)
        opening.notes.append(
            f"{name} is no longer a graph input: its default value contained a size, which was replaced"
        )
    work.notes.extend(opening.notes)
    work.also.extend(rows.compared for rows in _rows(work, opening, found))


_SEED = 0


def _by(work: Work, found: list[Request], choice: Choice) -> tuple[Opening, list[str]]:
    """Opens the dimensions by one choice. Also returns the inputs with defaults that are not read any more."""
    opened: dict[ir.Value, dict[int, str]] = {}
    for one in found:
        opened.setdefault(one.value, {})[one.axis] = str(one.new)
    with as_constants(work, opened) as replaced:
        settled = computed_operands.settle(work)
        opening = _opening(work, opened, choice)
        opening.notes += [settled] if settled else []
    return opening, replaced


def _restored(work: Work, before: ir.Model, found: list[Request]) -> list[Request]:
    """Undoes an attempt. Returns the requests with the inputs of the restored model."""
    names = [one.value.name for one in found]
    work.become(cloned(before), inlines=True)
    inputs = {value.name: value for value in work.model.graph.inputs}
    return [replace(one, value=inputs[name]) for one, name in zip(found, names, strict=True)]


def _rows(work: Work, opening: Opening, found: list[Request]) -> Iterator[Rows]:
    """Yields what is to compare for each symbol."""
    opened: dict[ir.Value, dict[int, str]] = {}
    for one in found:
        opened.setdefault(one.value, {})[one.axis] = str(one.new)
    sizes = {str(one.new): int(one.was) for one in found if one.was is not None}
    shapes = inferred_outputs(work.model) if any(opening.dims(one) is None for one in work.model.graph.outputs) else {}
    for symbol, size in sizes.items():
        places = {value: axis for value, axes in opened.items() for axis, name in axes.items() if name == symbol}
        by_name = {value.name or "": axis for value, axis in places.items()}
        rows = Rows(work, symbol, size, by_name, {}, [], sizes, opening.kept.get(symbol, []))
        for value in work.model.graph.outputs:
            if isinstance(value.type, ir.SequenceType | ir.OptionalType):
                rows.others.append(value.name or "")  # it has no axes
                continue
            dims = opening.dims(value)
            axis = factors.led_by(dims, symbol) if dims is not None else _axis(shapes.get(value.name or ""), symbol)
            if axis is not None:
                rows.outputs[value.name or ""] = axis
            elif opening.is_reached(value):
                rows.others.append(value.name or "")
        yield rows


def _axis(shape: ir.Shape | None, symbol: str) -> tuple[int, int] | None:
    """Returns the axis of a shape that is the symbol, with one element for each index of it; None if there is none, or
    if another axis has the symbol, too. Shapes with other symbols have no factors."""
    texts = [str(dim.value) if isinstance(dim, ir.SymbolicDim) else "" for dim in shape or ()]
    places = [axis for axis, text in enumerate(texts) if symbol in names_in(text)]
    return (places[0], 1) if len(places) == 1 and texts[places[0]] == symbol else None


def _opening(work: Work, opened: Mapping[ir.Value, Mapping[int, str]], choice: Choice) -> Opening:
    """Follows the opened dimensions through the model, and replaces the constants that fix them."""
    work.infer()
    _forget_unreadable(work)
    _forget_names(work)
    beside = _numbers(work.model, opened)
    static = {
        value: tuple(_number(dim, beside) for dim in value.shape)
        for graph in walk.graphs(work.model)
        for value in (*graph.inputs, *graph.initializers.values(), *(one for node in graph for one in node.outputs))
        if value.shape is not None
    }
    work.reshape(*opened)
    work.resize()
    opening = Opening(work, opened, static, beside, choice)
    opening.run()
    return opening


def _forget_names(work: Work) -> None:
    """Replaces names that only graph outputs have by what follows from the inputs. Exporters name each axis of an
    output that they do not know: `Add3_dim_0`."""
    inputs = {name for value in work.model.graph.inputs for name in names_of(value.shape)}
    named = [value for value in work.model.graph.outputs if names_of(value.shape) - inputs]
    found = inferred_outputs(work.model) if named else {}
    for value in named:
        shape = found.get(value.name or "")
        if shape is not None and value.shape is not None and len(shape) == len(value.shape):
            value.shape = shape


def _number(dim: int | ir.SymbolicDim, beside: Mapping[str, int]) -> int | None:
    if isinstance(dim, int):
        return dim
    return None if dim.value is None or not beside else evaluate(dim.value, beside)


def _numbers(model: ir.Model, opened: Mapping[ir.Value, Mapping[int, str]]) -> dict[str, int]:
    """Returns a number for each symbol that inputs have already: a prime that divides no size in the model, so that
    sizes that follow from the symbol are recognised by their factors."""
    new = {name for axes in opened.values() for name in axes.values()}
    names = dict.fromkeys(
        str(dim.value)
        for value in model.graph.inputs
        for dim in value.shape or ()
        if isinstance(dim, ir.SymbolicDim) and dim.value is not None and is_symbol(str(dim.value))
    )
    sizes = {int(dim) for value in walk.values(model) for dim in value.shape or () if isinstance(dim, int)}
    free = (one for one in _PRIMES if all(size % one or not size for size in sizes))
    return dict(zip([name for name in names if name not in new], free, strict=False))


_PRIMES = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061, 1063, 1069, 1087, 1091, 1093, 1097)


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
