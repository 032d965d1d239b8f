"""Parses the dynamic axes: `x:0=batch,2=height;mask:0=batch`, or the same as Python objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnxsmith.problem import OnnxsmithError, problem

_Axes = Mapping[int, Any] | Sequence[Any] | None
Dynamic = str | Mapping[str, _Axes] | Sequence[_Axes] | None

AUTO = "auto"
"""Stands for every axis that can be dynamic."""


def is_auto(dynamic: Dynamic | Sequence[str]) -> bool:
    """Whether the dynamic axes are found by probing the module."""
    return dynamic == AUTO or (isinstance(dynamic, list | tuple) and list(dynamic) == [AUTO])


def parse(dynamic: Dynamic | Sequence[str], inputs: Sequence[str] = ()) -> dict[str, dict[int, str]]:
    """Parses the dynamic axes into input name → axis → dimension name.

    A dimension may be a sum of others (`mask:1=past+new`). In text, `;` separates inputs; a list of texts also works.
    In Python, a mapping gives for each input a mapping from axis to dimension, or a list of axes. A dimension is a name
    or a `torch.export.Dim`, which stands for its name. A list of axes, `Dim.DYNAMIC` and `Dim.AUTO` name each axis
    after the input (`x.0`). Instead of a mapping by input, a list gives the axes of `inputs` in order; None stands for
    an input with fixed axes.

    Raises:
        OnnxsmithError: `export/dynamic-syntax` names the part that cannot be parsed.
    """
    given: object = dynamic  # a caller without type checks may pass any object
    if given is not None and not isinstance(given, str | Mapping | Sequence):
        raise _unreadable(repr(given), "a mapping {name: {axis: dimension}}, a list of axes or a text is needed")
    if dynamic is None:
        return {}
    if isinstance(dynamic, str):
        dynamic = [dynamic]
    if isinstance(dynamic, Mapping):
        return {str(name): _axes(str(name), axes) for name, axes in dynamic.items() if axes is not None}
    texts = [one for one in dynamic if isinstance(one, str)]
    if len(texts) < len(dynamic):
        if len(dynamic) > len(inputs):
            raise _unreadable(repr(dynamic), f"it names axes of {len(dynamic)} inputs, the model has {len(inputs)}")
        return {name: _axes(name, axes) for name, axes in zip(inputs, dynamic, strict=False) if axes is not None}
    found: dict[str, dict[int, str]] = {}
    for text in texts:
        for piece in filter(None, (piece.strip() for piece in text.split(";"))):
            name, axes = _piece(piece)
            found.setdefault(name, {}).update(axes)
    return found


def _piece(piece: str) -> tuple[str, dict[int, str]]:
    name, colon, rest = piece.rpartition(":")
    if not colon or not name.strip():
        raise _unreadable(piece, "an input's name, a colon and its axes are needed")
    axes: dict[int, str] = {}
    for item in rest.split(","):
        number, equals, dim = (part.strip() for part in item.partition("="))
        try:
            axis = int(number)
        except ValueError as error:
            raise _unreadable(piece, f"{number!r} is not the number of an axis") from error
        axes[axis] = _dim(dim, piece) if equals else f"{name.strip()}.{axis}"
    return name.strip(), axes


def _axes(name: str, axes: object) -> dict[int, str]:
    if isinstance(axes, Mapping):
        items = list(axes.items())
    elif isinstance(axes, Sequence) and not isinstance(axes, str):
        numbers = all(isinstance(axis, int) for axis in axes)
        items = [(axis, f"{name}.{axis}") for axis in axes] if numbers else list(enumerate(axes))
    else:
        raise _unreadable(f"{name}: {axes!r}", "a mapping {axis: name} or a list of axes is needed")
    found: dict[int, str] = {}
    for axis, dim in items:
        if isinstance(axis, bool) or not isinstance(axis, int):
            raise _unreadable(f"{name}: {axes!r}", f"{axis!r} is not the number of an axis")
        if dim is None:
            continue
        if type(dim).__name__ == "_DimHint":
            if dim.type.name != "STATIC":
                found[axis] = f"{name}.{axis}"
            continue
        if not isinstance(dim, str):
            dim = getattr(dim, "__name__", dim)
        found[axis] = _dim(str(dim), f"{name}: {axes!r}")
    return found


def _dim(dim: str, where: str) -> str:
    terms = [term.strip() for term in dim.split("+")]
    if not all(part.isidentifier() or part.isdigit() for term in terms for part in term.split(".")):
        raise _unreadable(where, f"{dim!r} is not a name for a dimension, nor a sum of such names")
    return " + ".join(terms)


def _unreadable(where: str, why: str) -> OnnxsmithError:
    return problem(
        "export/dynamic-syntax",
        "the dynamic axes cannot be read",
        where=where,
        why=why,
        fix='write --dynamic "x:0=batch,2=height,3=width", or dynamic={"x": {0: "batch"}} in Python',
    )
