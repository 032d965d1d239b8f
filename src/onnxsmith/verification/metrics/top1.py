"""Compares the best element of rows of scores."""

from __future__ import annotations

from onnxsmith.verification.metrics._top_k import Agreement


class Top1(Agreement):
    """The share of rows, along the last axis, whose largest element is at the same position; ties may be broken either
    way. 1 if a classifier gives the same answers."""

    title = "agreement of the top 1"
    k = 1
