"""`fmin`: the smaller of two numbers, of a number and NaN the number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.exporter.translations.base import Sample, Translation
from onnxsmith.exporter.translations.fmax import beyond, held


class Fmin(Translation):
    """The smaller; of a number and NaN the number."""

    targets = ("aten::fmin", "prims::fmin")

    def decompose(self, self_: Any, other: Any) -> Any:
        return beyond(self_, other, least=True)

    def samples(self) -> Iterator[Sample]:
        yield from held()
