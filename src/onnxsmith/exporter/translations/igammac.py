"""`igammac`: the regularised incomplete gamma function Q(a, x)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.exporter.translations._incomplete_gamma import held, incomplete
from onnxsmith.exporter.translations.base import Sample, Translation


class Igammac(Translation):
    """By `_incomplete_gamma.lower_and_upper`, in float64."""

    targets = ("aten::igammac", "prims::igammac")
    kernel_error = 1e-9

    def decompose(self, self_: Any, other: Any) -> Any:
        return incomplete(self_, other, 1)

    def samples(self) -> Iterator[Sample]:
        yield from held()
