"""The steps of a reduction, in their order."""

from __future__ import annotations

from collections.abc import Callable

from onnxsmith.reduction import chunks, halving, inlining, plainer, ports, sizes
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
"""Cuts after which every tensor that is left holds what it held before."""

OPENINGS: tuple[tuple[str, Step], ...] = (
    ("functions inlined", inlining.functions),
    ("bodies inlined", inlining.bodies),
    ("states and results of bodies", ports.fewer),
)
"""What lets more be cut: after one that changed something, the cuts begin again."""

SHRINKS: tuple[tuple[str, Shrink], ...] = (
    ("inputs made readable", plainer.readable),
    ("smaller dimensions", sizes.smaller),
    ("attributes left out", plainer.attributes),
    ("small inputs made constants", plainer.constants),
    ("descriptions left out", plainer.descriptions),
)
"""Made once nothing can be taken out: what is left becomes plainer."""
