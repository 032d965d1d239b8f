"""Makes the names of declared dimensions unambiguous, and compares declared shapes."""

from __future__ import annotations

import itertools

import onnx_ir as ir

from onnxsmith.graph.shapes import sound_shapes, symbols
from onnxsmith.graph.structure import walk


def separate(model: ir.Model) -> set[str]:
    """Renames a symbol that stands a second time in the graph inputs; returns all names in use.

    Runtimes accept inputs whose dimensions share a name and differ in size, so no rule may rely on their equality.
    """
    seen: set[str] = set()
    taken = names(model)
    for value in model.graph.inputs:
        shape = value.shape
        if shape is None:
            continue
        dims: list[int | ir.SymbolicDim] = []
        for dim in shape:
            own = frozenset() if isinstance(dim, int) or dim.value is None else symbols.names(dim.value)
            dims.append(_renamed(dim, taken) if own & seen else dim)
            seen |= own
        value.shape = ir.Shape(dims)
    return taken


def agree(a: ir.Shape, b: ir.Shape) -> bool:
    """Whether two shapes may be equal: the same rank, and no axis with two different numbers."""
    pairs = zip(a, b, strict=False)
    return len(a) == len(b) and all(x == y or not (isinstance(x, int) and isinstance(y, int)) for x, y in pairs)


def names(model: ir.Model) -> set[str]:
    """Returns every name in a declared dimension."""
    values = (
        value
        for graph in walk.graphs(model)
        for value in (*graph.inputs, *graph.outputs, *(value for node in graph for value in node.outputs))
    )
    dims = (dim for value in values for dim in value.shape or () if isinstance(dim, ir.SymbolicDim))
    return {name for dim in dims if dim.value is not None for name in symbols.names(dim.value)}


def _renamed(dim: int | ir.SymbolicDim, taken: set[str]) -> ir.SymbolicDim:
    """Returns a dimension with a new name, made from the old one."""
    stem = "".join(letter if letter.isalnum() else "_" for letter in f"dim_{dim}")
    name = next(name for name in (f"{stem}_{number}" for number in itertools.count(2)) if name not in taken)
    taken.add(name)
    return ir.SymbolicDim(name)


def sound(shape: ir.Shape | None) -> ir.Shape | None:
    """Returns the shape with unknown dimensions in place of `?` and -1."""
    if shape is None:
        return None
    return ir.Shape([dim if sound_shapes.is_sound(dim) else None for dim in shape])
