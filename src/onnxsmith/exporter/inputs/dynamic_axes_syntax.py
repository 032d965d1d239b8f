"""Parses the dynamic axes: `x:0=batch,2=height;mask:0=batch`, or the same as Python objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from onnxsmith.base.problem import OnnxsmithError, problem

Dynamic = str | Mapping[str, Any] | Sequence[Any] | None
"""Names the axes as text, or as `torch.export` and `torch.onnx.export` take them: see `parse` and
`nested_dynamic_axes.py`."""

AUTO = "auto"
"""Stands for every axis that can be dynamic."""


def is_auto(dynamic: Dynamic | Sequence[str]) -> bool:
    """Whether the dynamic axes are found by probing the module."""
    return dynamic == AUTO or (isinstance(dynamic, list | tuple) and list(dynamic) == [AUTO])


@dataclass
class Asked:
    """The requested dynamic axes: input name → axis → dimension name.

    `limits` are the smallest and the largest size of a dimension, from the `min` and `max` of a `torch.export.Dim`;
    None is no limit. `optional` are axes that may become fixed (`Dim.AUTO`). `sizes` are the sizes given for fixed
    axes: input name, axis, size. `outputs` are the names given to axes of outputs: output name → axis → name.
    """

    axes: dict[str, dict[int, str]] = field(default_factory=dict)
    limits: dict[str, tuple[int, int | None]] = field(default_factory=dict)
    optional: set[tuple[str, int]] = field(default_factory=set)
    sizes: list[tuple[str, int, int]] = field(default_factory=list)
    outputs: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, name: str, axes: object) -> None:
        """Adds the axes of one input: a mapping from axis to dimension, a list of axes, or a list of dimensions."""
        where = f"{name}: {axes!r}"
        own = self.axes.setdefault(name, {})
        for axis, dim in _items(axes, where):
            if isinstance(axis, bool) or not isinstance(axis, int):
                raise unreadable(where, f"{axis!r} is not the number of an axis")
            if dim is None:
                continue
            if isinstance(dim, int) or hasattr(dim, "value"):  # a fixed size; torch writes some as a Dim with a value
                self.sizes.append((name, axis, int(getattr(dim, "value", dim))))
                continue
            if type(dim).__name__ == "_DimHint":
                if dim.type.name == "STATIC":
                    continue
                if dim.type.name == "AUTO":
                    self.optional.add((name, axis))
                symbol = f"{name}.{axis}"
            else:
                symbol = _dim(str(getattr(dim, "__name__", dim)), where)
            own[axis] = symbol
            self._limit(symbol, dim)

    def without(self, axes: Iterable[tuple[str, int]]) -> Asked:
        """Returns the request with these axes fixed."""
        gone = set(axes)
        left = {n: {a: dim for a, dim in own.items() if (n, a) not in gone} for n, own in self.axes.items()}
        return replace(self, axes={n: own for n, own in left.items() if own}, optional=self.optional - gone)

    def _limit(self, symbol: str, dim: Any) -> None:
        """Reads the limits of a dimension; those of `2*batch` follow from those of `batch`."""
        dim = getattr(dim, "root", dim)
        low, high = (_number(getattr(dim, name, None)) for name in ("min", "max"))
        if low or high is not None:
            self.limits[getattr(dim, "__name__", symbol)] = (low or 0, high)


def _number(limit: Any) -> int | None:
    """Returns a limit as a number; None if there is none, which torch writes as its own infinite number."""
    return limit if type(limit) is int else None


def parse(dynamic: Dynamic | Sequence[str]) -> Asked:
    """Parses the dynamic axes of each input, by the input's name.

    A dimension may be a sum of others (`mask:1=past+new`). In text, `;` separates inputs; a list of texts also works.
    In Python, a mapping gives for each input a mapping from axis to dimension, or a list of axes or dimensions. A
    dimension is a name or a `torch.export.Dim`, which stands for its name. A list of axes, `Dim.DYNAMIC` and `Dim.AUTO`
    name each axis after the input (`x.0`). None, `Dim.STATIC` and a number stand for a fixed axis.

    Raises:
        OnnxsmithError: `export/dynamic-syntax` names the part that cannot be parsed.
    """
    asked = Asked()
    if isinstance(dynamic, Mapping):
        for name, axes in dynamic.items():
            if axes is not None:
                asked.add(str(name), axes)
        return asked
    for text in [dynamic] if isinstance(dynamic, str) else dynamic or ():
        for piece in filter(None, (piece.strip() for piece in str(text).split(";"))):
            for name, axes in _pieces(piece):
                asked.axes.setdefault(name, {}).update(axes)
    return asked


def is_text(dynamic: object) -> bool:
    """Whether the axes are given as text, or as a list of texts."""
    texts = isinstance(dynamic, list | tuple) and all(isinstance(one, str) for one in dynamic)
    return dynamic is None or isinstance(dynamic, str) or texts


def _pieces(piece: str) -> Iterator[tuple[str, dict[int, str]]]:
    """Yields the inputs of a text, each with its axes: `x:0=batch,2=height`. An item with a colon begins the next
    input."""
    name = ""
    for item in piece.split(","):
        before, colon, rest = item.rpartition(":")
        name = before.strip() if colon else name
        if not name:
            raise unreadable(piece, "an input's name, a colon and its axes are needed")
        number, equals, dim = (part.strip() for part in rest.partition("="))
        try:
            axis = int(number)
        except ValueError as error:
            raise unreadable(piece, f"{number!r} is not the number of an axis") from error
        yield name, {axis: _dim(dim, piece) if equals else f"{name}.{axis}"}


def _items(axes: object, where: str) -> list[tuple[Any, Any]]:
    """Returns the axes with their dimensions. A dimension that is not given is named after its axis."""
    if isinstance(axes, Mapping):
        return list(axes.items())
    if isinstance(axes, Sequence) and not isinstance(axes, str):
        numbers = all(isinstance(axis, int) for axis in axes)
        name = where.partition(":")[0]
        return [(axis, f"{name}.{axis}") for axis in axes] if numbers else list(enumerate(axes))
    raise unreadable(where, "a mapping {axis: name} or a list of axes is needed")


_TERM = re.compile(r"\s*([+*-])\s*")


def _dim(dim: str, where: str) -> str:
    """Parses a dimension: a name, or sums, differences and products of names and numbers."""
    terms = _TERM.split(dim.strip())
    if not all(part.isidentifier() or part.isdigit() for term in terms[::2] for part in term.split(".")):
        raise unreadable(where, f"{dim!r} is not a name for a dimension, nor a sum of such names")
    return "".join(term if term == "*" else f" {term} " if term in ("+", "-") else term for term in terms)


def unreadable(where: str, why: str) -> OnnxsmithError:
    """Returns the problem of dynamic axes that cannot be parsed."""
    named = re.fullmatch(r"([\w.]+)\s*[=:]\s*([A-Za-z_]\w*)", where.strip())  # the axis is missing
    name, dim = named.groups() if named else ("x", "batch")
    return problem(
        "export/dynamic-syntax",
        "the dynamic axes cannot be read",
        where=where,
        why=why,
        fix=f'write --dynamic "{name}:0={dim}", an axis with its name each; or dynamic={{"{name}": '
        f'{{0: "{dim}"}}}} in Python',
    )
