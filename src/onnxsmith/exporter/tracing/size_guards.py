"""Finds the numbers that a trace compared dynamic sizes with: beyond them the module may behave unlike the graph."""

from __future__ import annotations

from typing import Any

import sympy
from torch.export import ExportedProgram

from onnxsmith.base.seams.torch.tensors import mode_of

_LEAST, _MOST = 2, 1 << 20
"""Numbers in this range count. Outside of it are torch's own comparisons: with 0 and 1, and with the limits of
integers."""


def compared_with(exported: ExportedProgram) -> dict[str, frozenset[int]]:
    """Maps each symbol of the program to the integers in the trace's guards on it: 32 for `past + new <= 32`."""
    found: dict[str, set[int]] = {}
    for guard in _guards(exported):
        numbers = {abs(int(one)) for one in guard.atoms(sympy.Integer)}
        numbers = {number for number in numbers if _LEAST <= number <= _MOST}
        for symbol in guard.free_symbols:
            found.setdefault(str(symbol), set()).update(numbers)
    return {symbol: frozenset(numbers) for symbol, numbers in found.items() if numbers}


def _guards(exported: ExportedProgram) -> list[Any]:
    mode = mode_of(node.meta.get("val") for node in exported.graph.nodes)
    if mode is None or mode.shape_env is None:
        return []
    guards = [guard.expr for guard in mode.shape_env.guards]
    limits: list[Any] = [
        sympy.Lt(symbol, values.upper + 1)  # torch dropped the guard that set this limit: restored here
        for symbol, values in exported.range_constraints.items()
        if isinstance(values.upper, sympy.Integer)
    ]
    return [one for one in (*guards, *limits) if isinstance(one, sympy.core.relational.Relational)]
