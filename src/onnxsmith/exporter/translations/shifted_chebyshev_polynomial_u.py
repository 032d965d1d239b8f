"""`special.shifted_chebyshev_polynomial_u`: Chebyshev's second kind at 2x - 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.exporter.translations._polynomials import held, polynomial
from onnxsmith.exporter.translations.base import Sample, Translation


class ShiftedChebyshevPolynomialU(Translation):
    """From U₁ = 2y for y = 2x - 1, by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_shifted_chebyshev_polynomial_u",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 4 * x - 2, lambda k, x, now, before: (4 * x - 2) * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from held()
