"""Compares results that are free by definition as what they are: vectors up to their sign, rows in any order.

An eigenvector times -1 is an eigenvector, and a set has no order. Before two answers are compared, the second is
turned or sorted to be as near to the first as the freedom allows. Nothing else is allowed: a wrong magnitude, another
vector or a sign inside a vector stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base import user_files
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.runtimes.base import Outputs
from onnxsmith.verification.metrics.base import widen

KEY = "onnxsmith.free"
"""Names the metadata property of the model: a JSON list of texts such as `sign:vectors`."""

_KINDS = ("sign", "order")
_NEAR = 16
"""Counts the rows, near in one direction, among which the row that fits is looked for. A choice."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Part:
    """An output that is free. `axes` are the axes along which a vector lies, or the one along which rows are listed;
    empty means the usual axis."""

    name: str
    axes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}:{','.join(map(str, self.axes))}" if self.axes else self.name


@dataclass(frozen=True)
class Freedom:
    """One freedom, `sign` or `order`. The parts have it together: one sign for a pair of vectors, one order for boxes
    and their scores."""

    kind: str
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return f"{self.kind}:{'+'.join(map(str, self.parts))}"

    @property
    def said(self) -> str:
        """Says the freedom in a report: `free up to sign: vectors`."""
        return f"free up to {self.kind}: {', '.join(part.name for part in self.parts)}"

    def aligned(self, reference: Outputs, candidate: Outputs) -> dict[str, Array]:
        """Returns the parts of the candidate that change; none if the shapes of the two sides differ."""
        held = [part for part in self.parts if part.name in reference and part.name in candidate]
        ours = [np.asarray(reference[part.name]) for part in held]
        theirs = [np.asarray(candidate[part.name]) for part in held]
        if not held or any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(ours, theirs, strict=True)):
            return {}
        kinds = "fiV" if self.kind == "sign" else "fiubV"
        if not all(array.size and array.dtype.kind in kinds for array in ours):
            return {}
        found = (_signed if self.kind == "sign" else _sorted)(held, ours, theirs)
        return {part.name: array for part, array in zip(held, found, strict=True)}


class Free:
    """The freedoms of a comparison; empty if every output has one right value."""

    def __init__(self, freedoms: Iterable[Freedom] = ()) -> None:
        self.freedoms = tuple(freedoms)

    def __bool__(self) -> bool:
        return bool(self.freedoms)

    def aligned(self, reference: Outputs, candidate: Outputs) -> Outputs:
        """Returns the candidate's outputs, as near to the reference's as the freedoms allow."""
        if not self.freedoms:
            return candidate
        found = dict(candidate)
        for one in self.freedoms:
            found |= one.aligned(reference, found)
        return found

    def of(self, name: str) -> str:
        """Returns the freedom of an output in words; "" if it has one right value."""
        return "; ".join(f"free up to {one.kind}" for one in self.freedoms if name in [part.name for part in one.parts])

    def joined(self, other: Free) -> Free:
        """Returns the freedoms of both; those of `other` take the place of those of the same outputs."""
        taken = {part.name for one in other.freedoms for part in one.parts}
        left = (one for one in self.freedoms if not taken & {part.name for part in one.parts})
        return Free((*left, *other.freedoms))

    def renamed(self, names: Mapping[str, str]) -> Free:
        """Returns the freedoms with other names of outputs; `names` maps old names to new ones."""
        return Free(
            replace(one, parts=tuple(replace(part, name=names.get(part.name, part.name)) for part in one.parts))
            for one in self.freedoms
        )


def read(texts: str | Sequence[str] | None, outputs: Sequence[str] | None = None) -> Free:
    """Reads freedoms from texts: `sign:vectors`, `sign:u+vh:-1`, `order:boxes+scores`. A number behind a name is the
    axis along which a vector lies (-2: the columns of a matrix), or along which rows are listed (0).

    Raises:
        OnnxsmithError: `input/free` for a text of another form, or for an output that is not in `outputs`.
    """
    found = []
    for text in [texts] if isinstance(texts, str) else texts or ():
        kind, colon, rest = str(text).partition(":")
        if kind not in _KINDS or not colon or not all(piece.strip() for piece in rest.split("+")):
            raise _unreadable(str(text))
        parts = tuple(_part(piece.strip()) for piece in rest.split("+"))
        stray = next((part.name for part in parts if outputs is not None and part.name not in outputs), None)
        if stray is not None:
            raise problem(
                "input/free",
                f"no output is called {stray!r}",
                where=str(text),
                fix=f"its outputs are: {', '.join(outputs or ()) or 'none'}",
            )
        found.append(Freedom(kind, parts))
    return Free(found)


def _part(piece: str) -> Part:
    name, colon, axes = piece.rpartition(":")
    try:
        return Part(name, tuple(int(axis) for axis in axes.split(","))) if colon else Part(piece)
    except ValueError:  # the name itself has a colon
        return Part(piece)


def _unreadable(text: str) -> OnnxsmithError:
    return problem(
        "input/free",
        f"{text!r} does not say what is arbitrary in an output",
        why="the sign of an output's vectors can be arbitrary, or the order of its rows",
        fix="write --free sign:vectors, or --free order:boxes+scores",
    )


def of_model(model: ir.Model) -> Free:
    """Returns the freedoms that the file's metadata has; none if they cannot be read."""
    try:
        found = user_files.parse_json(model.metadata_props.get(KEY, "[]"))
        return read([str(text) for text in found] if isinstance(found, list) else [])
    except (ValueError, OnnxsmithError):
        return Free()


def record(model: ir.Model, free: Free) -> None:
    """Writes the freedoms in place of those that the model has."""
    model.metadata_props.pop(KEY, None)
    if free:
        model.metadata_props[KEY] = json.dumps([str(one) for one in free.freedoms])


def _signed(parts: Sequence[Part], ours: Sequence[Array], theirs: Sequence[Array]) -> list[Array]:
    """Turns each vector towards the reference's. All parts of a vector get one sign."""
    along: list[tuple[int, ...]] = []
    products: list[Array] = []
    for part, a, b in zip(parts, ours, theirs, strict=True):
        axes = part.axes or ((-2,) if a.ndim > 1 else (0,))
        if any(not -a.ndim <= axis < a.ndim for axis in axes):
            return list(theirs)
        along.append(tuple(sorted(axis % a.ndim for axis in axes)))
        each = np.nan_to_num(widen(a) * widen(b), nan=0.0, posinf=0.0, neginf=0.0)
        products.append(np.asarray(each.sum(axis=along[-1])))
    if len({one.shape for one in products}) > 1:
        return list(theirs)
    signs = np.where(np.sum(products, axis=0) < 0, -1, 1)
    return [
        np.asarray(one * np.expand_dims(signs, axes).astype(one.dtype)) for axes, one in zip(along, theirs, strict=True)
    ]


def _sorted(parts: Sequence[Part], ours: Sequence[Array], theirs: Sequence[Array]) -> list[Array]:
    """Puts the rows in the order in which they are nearest to the reference's. All parts get one order."""
    axis = (parts[0].axes or (0,))[0]
    counts = {one.shape[: axis + 1] for one in ours if 0 <= axis < one.ndim}
    if len(counts) != 1 or any(axis >= one.ndim or axis < 0 for one in ours):
        return list(theirs)
    lead = counts.pop()
    found = [np.array(one) for one in theirs]
    for place in np.ndindex(*lead[:-1]):
        a = np.concatenate([widen(one[place]).reshape(lead[-1], -1) for one in ours], 1)
        b = np.concatenate([widen(one[place]).reshape(lead[-1], -1) for one in theirs], 1)
        order = _order(np.nan_to_num(a), np.nan_to_num(b))
        for one, given in zip(found, theirs, strict=True):
            one[place] = given[place][order]
    return found


def _order(a: Array, b: Array) -> Array:
    """Returns the row of `b` for each row of `a`: the nearest that is left, among the rows near in one direction."""
    scale = np.sqrt((a**2).mean(0)) + np.finfo(np.float64).tiny
    direction = np.random.default_rng(0).uniform(0.5, 1.5, a.shape[1])
    first, second = (
        np.argsort((a / scale) @ direction, kind="stable"),
        np.argsort((b / scale) @ direction, kind="stable"),
    )
    order, left = np.empty(len(a), np.int64), list(second)
    for row in first:
        near = left[:_NEAR]
        apart = np.abs((b[near] - a[row]) / scale).max(1)
        order[row] = left.pop(int(apart.argmin()))
    return order


NONE = Free()
"""Says that every output has one right value."""
