"""Describes how the values of a generated input are drawn."""

from __future__ import annotations

from dataclasses import dataclass

SPREADS = ("normal", "unit", "positive")
"""Lists the spreads of float values: standard normal; uniform in 0..1; uniform in 1..2, for graphs that take logarithms
or divide."""
SCALES = {"large": 8.0, "small": 1e-3}
"""Maps a name to a factor of normal values. A choice: large values saturate activations, and at small values an epsilon
has an effect."""
EDGES = "edges"
"""Names the spread of `verification/inputs/boundary_values.py`: values where a model rounds or compares, and values
near zero."""


@dataclass(frozen=True)
class Manner:
    """Says how the values of a feed are drawn. Floats are drawn by `spread`. Integers are at most `most`, or all equal
    to `fill`. With `rows`, tree ensembles read rows of this kind, from batch `part`
    (`verification/inputs/tree_ensembles.py`)."""

    spread: str = "normal"
    most: int | None = None
    fill: int | None = None
    rows: str = ""
    part: int = 0

    def __str__(self) -> str:
        said = [] if self.most is None else [f"integers up to {self.most}"]
        said += [] if self.fill is None else [f"integers {self.fill}"]
        said += [f"{self.rows} of trees" + (f" {self.part + 1}" if self.part else "")] if self.rows else []
        return ", ".join([self.spread, *said])
