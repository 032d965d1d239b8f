"""`special.chebyshev_polynomial_t`: Chebyshev's first kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxsmith.exporter.translations._polynomials import held, polynomial
from onnxsmith.exporter.translations.base import Sample, Translation


class ChebyshevPolynomialT(Translation):
    """From T₁ = x, by the recurrence of DLMF table 18.9.1."""

    targets = ("aten::special_chebyshev_polynomial_t",)

    def decompose(self, x: Any, n: Any) -> Any:
        return polynomial(x, n, lambda x: x, lambda k, x, now, before: 2 * x * now - before)

    def samples(self) -> Iterator[Sample]:
        yield from held()
