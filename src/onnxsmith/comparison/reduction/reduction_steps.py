"""Lists the steps of a reduction, in their order."""

from __future__ import annotations

from collections.abc import Callable

from onnxsmith.comparison.reduction import (
    body_inlining,
    chunk_removal,
    graph_halving,
    port_removal,
    remainder_simplification,
    size_reduction,
)
from onnxsmith.comparison.reduction.case import Case
from onnxsmith.comparison.reduction.oracle import Oracle
from onnxsmith.comparison.reduction.tensor_facts import Known

Step = Callable[[Case, Known, Oracle], Case]
Shrink = Callable[[Case, Oracle], Case]

CUTS: tuple[tuple[str, Step], ...] = (
    ("nodes cut off at the end", graph_halving.prefix),
    ("outputs", chunk_removal.outputs),
    ("nodes cut off at the start", graph_halving.suffix),
    ("nodes in the middle", chunk_removal.nodes),
    ("outputs", chunk_removal.outputs),
    ("nodes in bodies and functions", chunk_removal.inner_nodes),
)
"""Steps that are repeated until none makes the model smaller."""

EXACT = {"nodes cut off at the end", "nodes cut off at the start", "outputs"}
"""Cuts after which every remaining tensor has the same value as before."""

OPENINGS: tuple[tuple[str, Step], ...] = (
    ("functions inlined", body_inlining.functions),
    ("bodies inlined", body_inlining.bodies),
    ("states and results of bodies", port_removal.fewer),
)
"""Steps that make further cuts possible. After a change, the cuts start again."""

SHRINKS: tuple[tuple[str, Shrink], ...] = (
    ("inputs made readable", remainder_simplification.readable),
    ("smaller dimensions", size_reduction.smaller),
    ("attributes left out", remainder_simplification.attributes),
    ("small inputs made constants", remainder_simplification.constants),
    ("descriptions left out", remainder_simplification.descriptions),
)
"""Steps for the remaining model, once no node can be removed."""
