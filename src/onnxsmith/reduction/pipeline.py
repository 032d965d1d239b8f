"""Lists the steps of a reduction, in their order."""

from __future__ import annotations

from collections.abc import Callable

from onnxsmith.reduction import chunks, halving, inlining, ports, simplifying, sizes
from onnxsmith.reduction.case import Case
from onnxsmith.reduction.oracle import Oracle
from onnxsmith.reduction.tensors import Known

Step = Callable[[Case, Known, Oracle], Case]
Shrink = Callable[[Case, Oracle], Case]

CUTS: tuple[tuple[str, Step], ...] = (
    ("nodes cut off at the end", halving.prefix),
    ("outputs", chunks.outputs),
    ("nodes cut off at the start", halving.suffix),
    ("nodes in the middle", chunks.nodes),
    ("outputs", chunks.outputs),
    ("nodes in bodies and functions", chunks.inner_nodes),
)
"""Repeated until no step makes the model smaller."""

EXACT = {"nodes cut off at the end", "nodes cut off at the start", "outputs"}
"""Cuts after which every remaining tensor has the value that it had before."""

OPENINGS: tuple[tuple[str, Step], ...] = (
    ("functions inlined", inlining.functions),
    ("bodies inlined", inlining.bodies),
    ("states and results of bodies", ports.fewer),
)
"""Steps that open ways for more cuts: after a change, the cuts begin again."""

SHRINKS: tuple[tuple[str, Shrink], ...] = (
    ("inputs made readable", simplifying.readable),
    ("smaller dimensions", sizes.smaller),
    ("attributes left out", simplifying.attributes),
    ("small inputs made constants", simplifying.constants),
    ("descriptions left out", simplifying.descriptions),
)
"""Steps for the remaining model, once no node can be removed."""
