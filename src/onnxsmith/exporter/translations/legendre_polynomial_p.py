"""`special.legendre_polynomial_p`: Legendre's polynomials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.exporter.translations._polynomials import held, polynomial
from onnxsmith.exporter.translations.base import Sample, Translation


class LegendrePolynomialP(Translation):
    """From P₁ = x, by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_legendre_polynomial_p",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: x, lambda k, x, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1))

    def samples(self) -> Iterator[Sample]:
        yield from held()
