"""`special.chebyshev_polynomial_u`: Chebyshev's second kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.exporter.translations._polynomials import held, polynomial
from onnxsmith.exporter.translations.base import Sample, Translation


class ChebyshevPolynomialU(Translation):
    """From U₁ = 2x, by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_chebyshev_polynomial_u",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 2 * x, lambda k, x, now, before: 2 * x * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from held()
