"""Tells by hashes whether a report is about the shown model."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from onnxsmith.base.report.base import ModelFile, Report

_DIGITS = 12
"""Counts the digits of a hash in a line. A choice: enough to find the hash in a report, few enough to read."""


class Origin(StrEnum):
    """Says which model a report is about, the surest case first."""

    SAME = "of this model"
    WEIGHTS = "of this graph with other weights"
    OTHER = "of another model"
    UNKNOWN = "no hash"


def origin(report: Report, shown: ModelFile | None) -> Origin:
    """Compares the files that a report read or wrote with the shown file. One equal file is enough, because the report
    of a step is about the models before and after the step."""
    if shown is None or not report.models:
        return Origin.UNKNOWN
    same = [one for one in report.models if one.same_graph(shown)]
    if not same:
        return Origin.OTHER
    return Origin.SAME if any(one.same_weights(shown) for one in same) else Origin.WEIGHTS


def surest(origins: Sequence[Origin]) -> Origin:
    """Returns the first of the origins in the order of `Origin`, because a report may be about only one of two
    models."""
    return min(origins, key=list(Origin).index)


def named(files: Sequence[ModelFile]) -> str:
    """Says which files a report is about: `hash 1a2b3c4d5e6f, named old.onnx`."""
    said = [f"hash {one.sha256[:_DIGITS]}, named {one.path}" for one in files]
    return "; ".join(dict.fromkeys(said))
