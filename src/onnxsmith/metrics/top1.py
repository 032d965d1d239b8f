"""Whether the best is the same."""

from __future__ import annotations

from onnxsmith.metrics._ranks import Agreement


class Top1(Agreement):
    """The share of rows, along the last axis, whose largest element is at the same place; ties may fall either way. 1
    for a classifier whose answers are all the same."""

    title = "agreement of the top 1"
    k = 1
