"""Whether the best five are the same."""

from __future__ import annotations

from onnxsmith.metrics._ranks import Agreement


class Top5(Agreement):
    """The share of rows, along the last axis, whose five largest elements are at the same places, in any order; ties
    may fall either way. 1 for a classifier whose answers are all the same."""

    title = "agreement of the top 5"
    k = 5
