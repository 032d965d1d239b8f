"""`all` of a number."""

from __future__ import annotations

from onnxsmith.exporter.translations._truth import TruthOfNumber


class AllTrue(TruthOfNumber):
    """Whether every element is not zero."""

    targets = ("aten::all", "aten::all.dim", "aten::all.dims")
