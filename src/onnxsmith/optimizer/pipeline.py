"""Defines the order of the passes. Rules have no order: they run on a worklist until nothing changes.

First `BEFORE` runs. Then come rounds: known sizes and constants (`folding.py`), constant branches (`branches.py`),
`BEFORE` again if these changed anything, the rules, `AFTER`. Rounds repeat, with shapes inferred again, until a round
changes nothing."""

from __future__ import annotations

from onnxsmith.base.report.parts.edits import TIDYING
from onnxsmith.graph.passes.base import Pass
from onnxsmith.graph.passes.common_subexpressions import CommonSubexpressions
from onnxsmith.graph.passes.constants import Constants
from onnxsmith.graph.passes.known_sizes import KnownSizes
from onnxsmith.graph.passes.shared_initializers import SharedInitializers
from onnxsmith.graph.passes.unused import Unused

BEFORE: tuple[tuple[str, Pass], ...] = (("", Constants()), ("", Unused()))
AFTER: tuple[tuple[str, Pass], ...] = (
    ("", Unused()),
    ("share/initializers", SharedInitializers()),
    ("share/nodes", CommonSubexpressions()),
    ("share/sizes", KnownSizes()),
    ("", Unused()),
)
"""Callers can choose or skip a pass with an id; a pass without an id always runs."""


def tidying(one: Pass) -> str:
    """Returns the name of a pass without an id in a report."""
    return f"{TIDYING}{one.title}"
