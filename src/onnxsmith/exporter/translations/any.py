"""`any` of a number."""

from __future__ import annotations

from onnxsmith.exporter.translations._truth import TruthOfNumber


class AnyTrue(TruthOfNumber):
    """Whether any element is not zero."""

    targets = ("aten::any", "aten::any.dim", "aten::any.dims")
