"""The numbers that a trace compared dynamic sizes with: behind them the module may do something else than the graph."""

from __future__ import annotations

from typing import Any

import sympy
from torch.export import ExportedProgram

from onnxsmith.seams.torch.tensors import mode_of

_LEAST, _MOST = 2, 1 << 20
"""Smaller ones are torch's own questions, larger ones the limits of integers."""


def compared_with(exported: ExportedProgram) -> dict[str, frozenset[int]]:
    """Symbol of the program -> integers that stand in a question about it: `past + new <= 32`."""
    found: dict[str, set[int]] = {}
    for question in _questions(exported):
        numbers = {abs(int(one)) for one in question.atoms(sympy.Integer)}
        numbers = {number for number in numbers if _LEAST <= number <= _MOST}
        for symbol in question.free_symbols:
            found.setdefault(str(symbol), set()).update(numbers)
    return {symbol: frozenset(numbers) for symbol, numbers in found.items() if numbers}


def _questions(exported: ExportedProgram) -> list[Any]:
    mode = mode_of(node.meta.get("val") for node in exported.graph.nodes)
    if mode is None or mode.shape_env is None:
        return []
    asked = [guard.expr for guard in mode.shape_env.guards]
    limits: list[Any] = [
        sympy.Lt(symbol, values.upper + 1)  # as the question reads that set the limit
        for symbol, values in exported.range_constraints.items()
        if isinstance(values.upper, sympy.Integer)
    ]
    return [one for one in (*asked, *limits) if isinstance(one, sympy.core.relational.Relational)]
