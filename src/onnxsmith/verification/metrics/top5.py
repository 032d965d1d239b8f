"""Compares the five best elements of rows of scores."""

from __future__ import annotations

from onnxsmith.verification.metrics._top_k import Agreement


class Top5(Agreement):
    """The share of rows, along the last axis, whose five largest elements are at the same positions, in any order; ties
    may be broken either way. 1 if a classifier gives the same answers."""

    title = "agreement of the top 5"
    k = 5
