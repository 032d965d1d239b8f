"""Unifies dimensions of two models in a merge. Sizes replace names, and the second model takes the names of the
first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.shapes.dims import symbols
from onnxsmith.graph.structure.signature import Dim, is_symbol, names_something, signature
from onnxsmith.graph.surgery.names import fix_symbols, rename_symbols

_MODELS = ("first", "second")


@dataclass(frozen=True)
class _Meeting:
    """Describes an axis at which the models meet. `where` names the ports, `dims` are its dimensions in the two
    models."""

    where: str
    axis: int
    dims: tuple[Dim, Dim]


def fix(
    a: ir.Model, b: ir.Model, joints: Mapping[str, str], shared: Mapping[str, str], notes: list[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Fixes symbolic dimensions of one model that meet a fixed size in the other model.

    `joints` maps outputs of the first model to the inputs of the second that read them. `shared` maps inputs of the
    first to the inputs of the second with which they become one input. Returns, for each model, the fixed names with
    their sizes.

    Raises:
        OnnxsmithError: `merge/types` if one name meets two sizes.
    """
    sizes: tuple[dict[str, int], dict[str, int]] = ({}, {})
    before = {(one.where, one.axis): one.dims for one in _meetings(a, b, joints, shared)}
    own = (_named(a), _named(b))
    # A fixed name may meet further names, so the meetings are read again after each.
    while (found := next(_fixable(list(_meetings(a, b, joints, shared)), own, sizes), None)) is not None:
        which, name, size = found
        fix_symbols((a, b)[which], {name: size})
        sizes[which][name] = size
        notes.append(f"dimension {name} of the {_MODELS[which]} model is {size}, as in the {_MODELS[1 - which]}")
    for one in _meetings(a, b, joints, shared):
        left, right = one.dims
        if isinstance(left, int) and isinstance(right, int) and left != right:
            raise _two_sizes(one, before[one.where, one.axis])
        if not (_is_name(left) or _is_name(right)) and left != right:
            notes.append(f"at {one.where}, axis {one.axis}, the first model has {left} and the second {right}")
    return sizes


def join(a: ir.Model, b: ir.Model, joints: Mapping[str, str], shared: Mapping[str, str], notes: list[str]) -> None:
    """Renames symbolic dimensions of the second model to the first model's names where the two meet. For example, `n`
    of an input becomes the `batch` of the output that it reads."""
    own, known = set(symbols(signature(b))), (_named(a), _named(b))
    names: dict[str, str] = {}
    for one in _meetings(a, b, joints, shared):
        first, second = one.dims
        if first not in known[0] or second not in known[1]:
            continue
        assert isinstance(first, str)
        assert isinstance(second, str)
        if first != second and first not in own and names.get(second, first) == first:
            names[second] = first
    if names:
        rename_symbols(b, names)
        notes += [f"dimension {old} of the second model is {new}" for old, new in names.items()]


def _meetings(a: ir.Model, b: ir.Model, joints: Mapping[str, str], shared: Mapping[str, str]) -> Iterator[_Meeting]:
    given, read = signature(a), signature(b)
    outputs, inputs = ({port.name: port.shape or () for port in ports} for ports in (given.outputs, given.inputs))
    others = {port.name: port.shape or () for port in read.inputs}
    for ports, pairs in ((outputs, joints), (inputs, shared)):
        for name, other in pairs.items():
            where = f"{name}={other}" if ports is outputs else f"the input {name}"
            for axis, dims in enumerate(zip(ports[name], others[other], strict=False)):
                yield _Meeting(where, axis, dims)


def _fixable(
    meetings: list[_Meeting], own: tuple[set[str], set[str]], done: tuple[dict[str, int], dict[str, int]]
) -> Iterator[tuple[int, str, int]]:
    """Yields the names that meet a size: the model (0 or 1), the name and the size."""
    for one in meetings:
        for which in (1, 0):
            name, size = one.dims[which], one.dims[1 - which]
            if isinstance(size, int) and isinstance(name, str) and name in own[which] and name not in done[which]:
                yield which, name, size


def _named(model: ir.Model) -> set[str]:
    """Returns the names that ports declare. A signature also makes up names for dimensions that have no name."""
    shapes = [value.shape for value in (*model.graph.inputs, *model.graph.outputs) if value.shape is not None]
    names = [dim.value for shape in shapes for dim in shape if isinstance(dim, ir.SymbolicDim)]
    return {name for name in names if name is not None and _is_name(name) and names_something(name)}


def _is_name(dim: Dim) -> bool:
    return isinstance(dim, str) and is_symbol(dim)


def _two_sizes(one: _Meeting, before: tuple[Dim, Dim]) -> OnnxsmithError:
    which = 1 if _is_name(before[1]) else 0
    return problem(
        "merge/types",
        f"the dimension {before[which]} of the {_MODELS[which]} model would have the sizes {one.dims[which]} and "
        f"{one.dims[1 - which]}",
        where=one.where,
        why=f"the {_MODELS[1 - which]} model has both sizes, and one name has one size",
        fix=f"make the sizes of the {_MODELS[1 - which]} model symbolic or equal: `onnxsmith set-dim`",
    )
