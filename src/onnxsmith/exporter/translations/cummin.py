"""`cummin`: the least of what stands before an element, it included, and where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.cummax import held, running


class Cummin(Translation):
    """A scan over values and places, as `cummax` is."""

    targets = ("aten::cummin",)

    def decompose(self, self_: Any, dim: int) -> Any:
        return running(self_, dim, least=True)

    def samples(self) -> Iterator[Sample]:
        yield from held()
