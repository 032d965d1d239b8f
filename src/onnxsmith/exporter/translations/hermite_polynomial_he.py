"""`special.hermite_polynomial_he`: the statisticians' Hermite polynomials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.exporter.translations._polynomials import held, polynomial
from onnxsmith.exporter.translations.base import Sample, Translation


class HermitePolynomialHe(Translation):
    """From He₁ = x, by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_hermite_polynomial_he",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: x, lambda k, x, now, before: x * now - k * before)

    def samples(self) -> Iterator[Sample]:
        yield from held()
