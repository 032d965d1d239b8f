"""Reads requests for dimension names and sizes: `x:0=batch,2=height`, or `batch=1`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.printable import one_line
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.words import first_few, listed, pasted
from onnxsmith.graph.shapes.dims import symbols
from onnxsmith.graph.structure import dim_ranges, tensor_paths
from onnxsmith.graph.structure.signature import is_symbol, names_something, signature

_SHOWN = 6
"""Limits the axes that a fix names. A choice."""
_FIX = 'write "x:0=batch" for a symbolic dimension, "x:0=1" or "batch=1" for a size'


@dataclass(frozen=True)
class Request:
    """Describes one dimension of one graph input, and its new name or size. `was` is the dimension now."""

    value: ir.Value
    axis: int
    new: int | str
    was: int | str | None


def requests(model: ir.Model, texts: Iterable[str]) -> list[Request]:
    """Returns the requested dimensions, without dimensions that already are as requested.

    Raises:
        OnnxsmithError: `edit/step-argument` for a conflict or a text that cannot be read, `edit/no-match` for an
            unknown name, `input/size-range` for a size above int64.
    """
    found: dict[tuple[ir.Value, int], Request] = {}
    for text in (one for given in texts for one in _apart(model, given)):
        for request in _of_text(model, text):
            place = (request.value, request.axis)
            if place in found and found[place].new != request.new:
                raise _wrong(f"axis {request.axis} of {request.value.name} is given twice")
            found[place] = request
    if not found:
        raise _wrong("no dimension was given")
    _refuse_conflicts(found.values())
    return [request for request in found.values() if request.new != request.was]


def _apart(model: ir.Model, text: str) -> list[str]:
    """Returns the parts of a text that names several inputs or dimensions: `x:0=batch,1=n,h:1=batch` is `x:0=batch,1=n`
    and `h:1=batch`, `batch=4,n=2` is `batch=4` and `n=2`."""
    inputs = {value.name or "" for value in model.graph.inputs}
    found: list[str] = []
    for part in text.split(",") if isinstance(text, str) else ():
        name, colon, rest = part.strip().rpartition(":")
        key = part.partition("=")[0].strip()
        starts = "=" in rest and (name in inputs if colon else re.fullmatch(r"-?\d*", key) is None)
        if starts or not found:
            found.append(part.strip() if starts else part)
        else:
            found[-1] += f",{part}"
    return found or [text]


def _of_text(model: ir.Model, text: str) -> list[Request]:
    name, colon, rest = text.rpartition(":") if isinstance(text, str) else ("", "", "")
    if not colon:
        return _of_symbol(model, text)
    inputs = {value.name or "": value for value in model.graph.inputs}
    if name not in inputs:
        near = tensor_paths.near(name, list(inputs))
        raise problem(
            "edit/no-match",
            f"{name!r} is not a graph input",
            why=f"the inputs are {', '.join(inputs) or 'none'}",
            fix=f"write {(near or list(inputs) or ['x'])[0]!r}",
        )
    value = inputs[name]
    if value.shape is None:
        raise _wrong(f"the rank of {name!r} is unknown", "declare the shape of the input when you export the model")
    made = []
    for part in rest.split(","):
        fits = re.fullmatch(r"\s*(-?\d+)\s*=\s*(\S+)\s*", part)
        if fits is None:
            raise _wrong(f"{part!r} of {text!r} is not AXIS=NAME")
        axis, rank = int(fits[1]), len(value.shape)
        if not -rank <= axis < rank:
            raise _wrong(f"{name!r} has no axis {axis}", f"choose an axis from 0 to {rank - 1}")
        made.append(Request(value, axis % rank, _new(fits[2]), _now(value, axis % rank)))
    return made


def _of_symbol(model: ir.Model, text: str) -> list[Request]:
    """Returns a request for each dimension of one name: `batch=1`."""
    name, equals, size = text.partition("=") if isinstance(text, str) else ("", "", "")
    if not equals or not size.strip().isdecimal():
        raise _wrong(f"{text!r} is neither INPUT:AXIS=NAME nor NAME=SIZE")
    number = dim_ranges.whole(size.strip())
    found = [
        Request(value, axis, number, name.strip())
        for value in model.graph.inputs
        for axis, dim in enumerate(value.shape or ())
        if isinstance(dim, ir.SymbolicDim) and dim.value == name.strip()
    ]
    if not found:
        known = symbols(signature(model))
        near = tensor_paths.near(name, list(known))
        raise problem(
            "edit/no-match",
            f"no input has a symbolic dimension {name.strip()!r}",
            why=f"the symbolic dimensions are {listed(known) or 'none'}",
            fix=f"write {near[0]!r}" if near else _symbolic_first(model, name.strip(), size.strip(), known),
        )
    return found


def _symbolic_first(model: ir.Model, name: str, size: str, known: Collection[str]) -> str:
    """Says how to set a dimension that no input has: under its own name, or by opening an axis of fixed size; if all
    sizes are fixed, by making the first axis symbolic."""
    if known:
        fixed = [
            f"{value.name}:{axis} ({dim})"
            for value in model.graph.inputs
            for axis, dim in enumerate(value.shape or ())
            if isinstance(dim, int)
        ]
        axis = one_line(fixed[0].partition(" ")[0]) if fixed else ""
        wish = f'; an axis of fixed size has no name; to make it dynamic, write "{axis}={name}"' if fixed else ""
        axes = f" (fixed are {first_few(fixed, _SHOWN)})" if fixed else ""
        return f"the names that can be set are {listed(known)}{wish}{axes}"
    ranked = [value.name for value in model.graph.inputs if value.name and value.shape]
    new = name if is_symbol(name) and names_something(name) else "n"
    shown = " ".join(f'"{one}:0={new}"' for one in ranked)
    return f"the sizes are fixed; write {shown} to allow any size on axis 0" if ranked else _FIX


def _new(text: str) -> int | str:
    if text.isdecimal():
        return dim_ranges.whole(text)
    if not is_symbol(text) or not names_something(text):
        raise _wrong(f"{text!r} is neither a size nor the name of a dimension", "use letters, digits and _")
    return text


def _now(value: ir.Value, axis: int) -> int | str | None:
    assert value.shape is not None
    dim = value.shape[axis]
    if isinstance(dim, int):
        return dim if dim >= 0 else None
    return dim.value if dim.value is not None and names_something(dim.value) else None


def _refuse_conflicts(found: Iterable[Request]) -> None:
    """Raises if one name would stand for different sizes, or a symbolic dimension would only be renamed."""
    sizes: dict[str, tuple[int, Request]] = {}
    for request in found:
        where = f"axis {request.axis} of {request.value.name}"
        if isinstance(request.new, str) and isinstance(request.was, str) and request.new != request.was:
            fix = f"`onnxsmith rename MODEL {pasted(request.was)} {pasted(request.new)} --kind dim -o OUT`"
            raise _wrong(f"{where} is symbolic already: {request.was}", fix)
        if isinstance(request.new, int) and isinstance(request.was, int) and request.new != request.was:
            fix = f'make it symbolic first: "{request.value.name}:{request.axis}=n"'
            raise _wrong(f"{where} has the fixed size {request.was}", fix)
        if isinstance(request.new, str) and isinstance(request.was, int):
            size, other = sizes.setdefault(request.new, (request.was, request))
            if size != request.was:
                why = f"{request.new!r} would be {size} in {other.value.name} but {request.was} in {request.value.name}"
                raise _wrong(why, "give the two dimensions different names")


def _wrong(what: str, fix: str = _FIX) -> OnnxsmithError:
    return problem("edit/step-argument", what, fix=fix)
