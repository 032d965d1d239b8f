"""Adds products of sizes, which are numbers and symbolic dimensions."""

from __future__ import annotations

from collections.abc import Iterable

from onnxsmith.base.report.parts.model_summary import Amount, MacTerm
from onnxsmith.graph.shapes import symbols
from onnxsmith.viewer.inspection.costs.cost_sizes import Sizes
from onnxsmith.viewer.inspection.mac_rules.base import Dim

_MOST_TERMS = 16
_LONGEST = 400
"""Limits the terms, and the characters, of a formula in a report. A choice: of a longer formula only the number is
read."""
_CANONICAL = 200
"""Limits the characters of a dimension that is brought into canonical form. A choice that bounds the cost."""

Monomial = tuple[str, ...]
"""Lists symbolic factors, sorted; () is 1."""


class Sum:
    """Holds a sum of products with whole coefficients: the coefficient of each product of symbolic dimensions."""

    def __init__(self) -> None:
        self.terms: dict[Monomial, int] = {}

    def add(self, product: Iterable[Dim]) -> None:
        """Adds a product of sizes."""
        monomial, count = split(product)
        self.terms[monomial] = self.terms.get(monomial, 0) + count

    def merge(self, other: Sum) -> None:
        """Adds another sum."""
        for monomial, count in other.terms.items():
            self.terms[monomial] = self.terms.get(monomial, 0) + count

    def at(self, sizes: Sizes) -> int:
        """Returns the sum at these sizes."""
        return sum(count * sizes.product(monomial) for monomial, count in self.terms.items())

    def amount(self, sizes: Sizes, per: int = 1) -> Amount:
        """Returns the sum divided by `per`, rounded up, for a report. The formula is included only if it is short."""
        ordered = sorted(
            ((monomial, count) for monomial, count in self.terms.items() if count),
            key=lambda item: (len(item[0]), -item[1], item[0]),
        )
        long = len(ordered) > _MOST_TERMS or sum(len(dim) for item in ordered for dim in item[0]) > _LONGEST
        terms = None if long else tuple(MacTerm(-(-count // per), monomial) for monomial, count in ordered)
        return Amount(-(-self.at(sizes) // per), terms)


def split(product: Iterable[Dim]) -> tuple[Monomial, int]:
    """Splits a product into its sorted symbolic factors and its number."""
    number, factors = 1, []
    for dim in product:
        plain = _canonical(dim) if isinstance(dim, str) else dim
        if isinstance(plain, int):
            number *= plain
        else:
            factors.append(plain)
    return (tuple(sorted(factors)) if number else ()), number


def _canonical(dim: str) -> Dim:
    return symbols.canonical(dim) if len(dim) <= _CANONICAL else dim
