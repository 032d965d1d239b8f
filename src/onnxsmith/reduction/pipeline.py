"""The steps of a reduction, in their order."""

from __future__ import annotations

from collections.abc import Callable

from onnxsmith.reduction import chunks, halving
from onnxsmith.reduction.case import Case
from onnxsmith.reduction.oracle import Oracle
from onnxsmith.reduction.tensors import Known

Step = Callable[[Case, Known, Oracle], Case]

CUTS: tuple[tuple[str, Step], ...] = (
    ("nodes cut off at the end", halving.prefix),
    ("outputs", chunks.outputs),
    ("nodes cut off at the start", halving.suffix),
    ("nodes in the middle", chunks.nodes),
    ("outputs", chunks.outputs),
    ("nodes in bodies and functions", chunks.inner_nodes),
)
"""Repeated until no step makes the model smaller."""

SHRINKS: tuple[tuple[str, Step], ...] = ()
"""Made once nothing can be taken out: what is left becomes plainer."""
