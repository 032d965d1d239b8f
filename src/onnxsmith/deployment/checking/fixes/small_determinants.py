"""Writes determinants of small matrices as sums of products."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import onnx_ir as ir

from onnxsmith.deployment.checking.fixes._node_replacement import rewritten
from onnxsmith.deployment.checking.fixes._shaped_copy import Places
from onnxsmith.deployment.checking.fixes.base import Fix
from onnxsmith.graph.surgery.node_insertion import Inserter

_MOST = 4
"""Largest number of rows of a matrix. A choice: the expansion of 4 rows has 40 products, that of 5 has 205."""


class SmallDeterminants(Fix):
    """Few compilers have Det. A determinant of up to 4 rows is written out along its first row (Laplace).

    Refused:
    1. The matrices have more than 4 rows, or a symbolic number of them.
    """

    rank = 18

    def tries(self, model: ir.Model, refused: Collection[str]) -> Iterator[tuple[str, ir.Model]]:
        places = Places.of(model)
        rewritten(places, "Det", _written_out)
        if places.changed:
            yield "determinants are written out", places.model


def _written_out(node: ir.Node, write: Inserter) -> ir.Value | None:
    x = node.inputs[0]
    size = x.shape[-1] if x is not None and x.shape is not None and len(x.shape) > 1 else None
    if x is None or x.shape is None or not isinstance(size, int) or not 0 < size <= _MOST:
        return None
    rank = len(x.shape)
    rows = [write.op("Gather", x, write.constant(at), axis=rank - 2) for at in range(size)]
    elements = [[write.op("Gather", row, write.constant(at), axis=rank - 2) for at in range(size)] for row in rows]
    return _determinant(elements, list(range(size)), write)


def _determinant(rows: Sequence[Sequence[ir.Value]], columns: list[int], write: Inserter) -> ir.Value:
    first = rows[0]
    if len(columns) == 1:
        return first[columns[0]]
    total: ir.Value | None = None
    for place, column in enumerate(columns):
        minor = _determinant(rows[1:], [one for one in columns if one != column], write)
        term = write.op("Mul", first[column], minor)
        total = term if total is None else write.op("Sub" if place % 2 else "Add", total, term)
    assert total is not None
    return total
