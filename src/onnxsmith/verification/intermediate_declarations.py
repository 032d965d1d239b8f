"""Corrects the declared shapes and dtypes of intermediate values.

A file may declare what its nodes give (`value_info`). An edit, or a tool that made the file, may have left a
declaration behind that no longer holds. No runtime refuses it, and some plan memory by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from onnxsmith.base.words import several
from onnxsmith.graph.shapes import dims
from onnxsmith.graph.shapes.symbolic_inference import inferred_alone
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.signature import Dim, signature

_FACTORS = (720720, 97)
"""Multiples that the symbols are tried at. A choice: at the first every usual quotient is a whole number, at the second
none is."""


def correct_intermediates(model: ir.Model, *, like: ir.Model | None = None) -> str:
    """Compares the declared shapes and dtypes of intermediate values with those that follow from the graph inputs, and
    replaces the declarations that are wrong. Returns a clause for the headline, "" if none is wrong. The clause counts
    the wrong declarations of `like` too, a model from which `model` was made.

    A dimension is wrong if both are sizes and differ, if one is a size and the other follows from free sizes of the
    inputs, or if the two expressions over the same names differ. Other names may be equal in every run, and stay.
    """
    wrong = _wrong(model)
    symbols = set(dims.symbols(signature(model)))
    for value, found in wrong:
        value.type = found.type if found.type is not None else value.type
        value.shape = (
            None if found.shape is None else ir.Shape([_known(dim, symbols) for dim in dims.written(found.shape)])
        )
    return corrected_clause(max(len(wrong), len(_wrong(like)) if like is not None else 0))


def corrected_clause(count: int) -> str:
    """Returns the clause for the headline on wrong declarations that were corrected; "" if none was wrong."""
    if not count:
        return ""
    was = "was" if count == 1 else "were"
    return f"{several(count, 'intermediate tensor')} {was} declared with a wrong shape or dtype, which was corrected"


def wrong_intermediates(model: ir.Model) -> str:
    """Returns a clause on the intermediate values that a model declares wrongly, "" if there are none."""
    count = len(_wrong(model))
    if not count:
        return ""
    is_ = "is" if count == 1 else "are"
    return f"{several(count, 'intermediate tensor')} {is_} declared with a wrong shape or dtype"


def _known(dim: Dim | None, symbols: set[str]) -> Dim | None:
    """Returns a dimension that inference found; None for a name that inference made up."""
    return dim if isinstance(dim, int) or (dim is not None and symbols.issuperset(_names(dim))) else None


def _wrong(model: ir.Model) -> list[tuple[ir.Value, ir.Value]]:
    """Returns the values that are declared wrongly, each with what follows from the graph inputs."""
    if not any(value.shape is not None or value.type is not None for value in _intermediates(model)):
        return []
    pairs = list(zip(_intermediates(model), _intermediates(inferred_alone(model)), strict=True))
    rounds = sizes_to_try(model)
    return [(value, found) for value, found in pairs if is_wrong(value.shape, value.type, found, rounds)]


def sizes_to_try(model: ir.Model) -> list[dict[str, int]]:
    """Returns sizes of the symbols of the graph inputs, at which declared and inferred dimensions are compared."""
    symbols = dims.symbols(signature(model))
    return [{name: factor * (1 + at) for at, name in enumerate(symbols)} for factor in _FACTORS]


def contradicts(declared: ir.Shape, found: ir.Shape, rounds: Sequence[Mapping[str, int]]) -> bool:
    """Whether a declared shape is wrong at some sizes of the inputs, given the shape that follows from them."""
    said, known = dims.written(declared), dims.written(found)
    if len(said) != len(known):
        return True
    return said != known and any(_differ(one, other, rounds) for one, other in zip(said, known, strict=True))


def _intermediates(model: ir.Model) -> Iterator[ir.Value]:
    """Yields the named results of nodes that are no graph outputs, in the order of the nodes."""
    for node in walk.all_nodes(model):
        yield from (value for value in node.outputs if value.name and not value.is_graph_output())


def is_wrong(
    shape: ir.Shape | None, type_: ir.TypeProtocol | None, found: ir.Value, rounds: Sequence[Mapping[str, int]]
) -> bool:
    """Whether a declared shape or dtype is wrong at some sizes of the inputs, given the value with what follows from
    them."""
    if type_ is not None and type(type_) is type(found.type) and found.dtype not in (None, type_.dtype):
        return True
    return shape is not None and found.shape is not None and contradicts(shape, found.shape, rounds)


def _differ(declared: Dim | None, found: Dim | None, rounds: Sequence[Mapping[str, int]]) -> bool:
    """Whether a declared dimension is wrong at some sizes of the inputs."""
    if isinstance(declared, str) and isinstance(found, str) and set(_names(declared)) != set(_names(found)):
        return False
    sizes = [(dims.evaluate(declared, at), dims.evaluate(found, at)) for at in rounds]
    return any(one is not None and other is not None and one != other for one, other in sizes)


def _names(dim: str) -> tuple[str, ...]:
    return dims.names_in(dim) or (dim,)
