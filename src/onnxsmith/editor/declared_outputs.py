"""Keeps declared output shapes where inference knows less than the file."""

from __future__ import annotations

import re
from collections.abc import Iterable

import onnx_ir as ir

_NAME = re.compile(r"[A-Za-z_]\w*")


def kept(
    declared: ir.Shape | None, inferred: ir.Shape | None, inputs: set[str], taken: set[str], *, sizes: bool
) -> ir.Shape | None:
    """Returns the inferred shape. A dimension for which inference only made up a name is replaced by the declared
    dimension.

    `inputs` are the names of the input dimensions. A number, or an expression of these names, is known and stays as
    inferred. A declared name that is `taken` is not kept: for example, an input dimension has this name, so the name
    would claim that both are equal. With `sizes`, declared numbers are kept too.
    """
    if declared is None or inferred is None or len(declared) != len(inferred):
        return inferred
    dims = [
        old if _is_vague(new, inputs) and _may_stay(old, taken, sizes) else new
        for old, new in zip(declared, inferred, strict=True)
    ]
    return inferred if dims == list(inferred) else ir.Shape(dims)


def _is_vague(dim: int | ir.SymbolicDim, inputs: set[str]) -> bool:
    """Whether the dimension is neither a number nor an expression of input dimensions only."""
    if isinstance(dim, int):
        return False
    return dim.value is None or not set(_NAME.findall(dim.value)) <= inputs


def _may_stay(dim: int | ir.SymbolicDim, taken: set[str], sizes: bool) -> bool:
    return sizes if isinstance(dim, int) else dim.value is not None and dim.value not in taken


def lost(declared: ir.Shape, now: ir.Shape, inputs: set[str]) -> str:
    """Returns why a declared number or name was replaced by a name that inference made up; "" if none was replaced."""
    if len(declared) != len(now):
        return ""
    for old, new in zip(declared, now, strict=True):
        if old != new and _is_vague(new, inputs) and (isinstance(old, int) or old.value is not None):
            return "the size follows from the numbers, and the edit may have changed it"
    return ""


def unequal(shapes: Iterable[tuple[ir.Shape | None, ir.Shape | None]]) -> set[str]:
    """Returns the names that several declared axes share, if these axes are not known to be equal now. `shapes` has
    pairs: the declared shape of an output, and its shape now."""
    found: dict[str, list[int | ir.SymbolicDim | None]] = {}
    for declared, now in shapes:
        known = now if now is not None and len(now) == len(declared or ()) else [None] * len(declared or ())
        for old, new in zip(declared or (), known, strict=True):
            if isinstance(old, ir.SymbolicDim) and old.value is not None:
                found.setdefault(old.value, []).append(new)
    return {name for name, dims in found.items() if len(dims) > 1 and not _all_equal(dims)}


def _all_equal(dims: list[int | ir.SymbolicDim | None]) -> bool:
    first = dims[0].value if isinstance(dims[0], ir.SymbolicDim) else dims[0]
    return first is not None and all(dim == dims[0] for dim in dims)
