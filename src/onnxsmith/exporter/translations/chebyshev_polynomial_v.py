"""`special.chebyshev_polynomial_v`: Chebyshev's third kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.exporter.translations._polynomials import held, polynomial
from onnxsmith.exporter.translations.base import Sample, Translation


class ChebyshevPolynomialV(Translation):
    """From V₁ = 2x - 1, by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_chebyshev_polynomial_v",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: 2 * x - 1, lambda k, x, now, before: 2 * x * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from held()
