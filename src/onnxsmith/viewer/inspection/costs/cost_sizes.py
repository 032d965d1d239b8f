"""Holds the sizes at which symbolic costs become numbers, adds products of sizes, and counts the runs of loops."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Set

import onnx_ir as ir

from onnxsmith.base.report.parts.model_summary import Amount, MacTerm
from onnxsmith.graph.shapes import dims, known_integers, symbols
from onnxsmith.graph.structure.walk import node_label
from onnxsmith.viewer.inspection.mac_rules.base import Dim, dims_in, operand

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
        terms = None
        if not long:
            terms = tuple(MacTerm(-(-count // per), tuple(map(sizes.told, dims_))) for dims_, count in ordered)
        whole = self.at(sizes)  # meets every size, so that `guessed` knows it
        guessed = sizes.guessed(dim for monomial, _ in ordered for dim in monomial)
        return Amount(-(-whole // per), terms, is_guess=guessed)


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


UNKNOWN = "trips_"
"""Is the prefix of the symbol for an unknown number of runs."""
_ENDLESS = 1 << 31
"""Names the trip count from which a loop runs "until the condition is false". A choice: exporters write the largest
int64."""


def trips(node: ir.Node, body: ir.Graph) -> tuple[Dim, str]:
    """Returns the number of runs of a body, which may be symbolic, and the assumption that the number needs; "" if the
    number is certain.

    An unknown number is the symbol `trips_NODE`, which is 1 unless a user gives it a size.
    """
    label = node_label(node)
    found = _scanned(node, body) if node.op_type == "Scan" else _counted(node) if node.op_type == "Loop" else None
    if found is None:
        symbol = f"{UNKNOWN}{re.sub(r'[^A-Za-z0-9_]+', '_', label).strip('_')}"
        return (
            symbol,
            f"{node.op_type} {label}: the number of iterations is unknown, so the costs call it {symbol} (default 1)",
        )
    if node.op_type == "Loop" and not known_integers.runs_to_its_limit(node, body):
        return found, f"Loop {label}: counted for {found} iterations, but its condition may end the loop earlier"
    return found, ""


def _scanned(node: ir.Node, body: ir.Graph) -> Dim | None:
    """Returns the length of the axis that a Scan walks along."""
    count = node.attributes.get_int("num_scan_inputs", 0)
    first = len(node.inputs) - count
    axes = node.attributes.get_ints("scan_input_axes", [0] * count)
    for place in range(max(count, 0)):
        shape = dims_in(node, first + place)
        if shape and place < len(axes) and -len(shape) <= axes[place] < len(shape):
            return shape[axes[place]]
    return None


def _counted(node: ir.Node) -> Dim | None:
    """Returns the trip count of a Loop."""
    found = known_integers.elements(operand(node, 0)) or [None]
    if isinstance(found[0], int):
        return max(found[0], 0) if found[0] < _ENDLESS else None
    return symbols.largest([found[0], 0]) if found[0] is not None else None


_BATCH, _OTHER = 1, 64
"""Sets the example sizes: 1 for batches and unknown numbers of runs, 64 for other dimensions. A choice: one sample, one
run; 64 suits images and sequences, and many networks need a multiple of 32."""


class Sizes:
    """Holds sizes of symbols. A symbol without a given size gets an example size when it is first met.

    A dimension that cannot be computed, such as `Broadcast(a, b)` with different sizes, is treated as a symbol. `names`
    are the names in a report of symbols that inference made.
    """

    def __init__(self, given: Mapping[str, int], batches: Set[str], names: Mapping[str, str] | None = None) -> None:
        self._names = dict(names or {})
        made = {told: name for name, told in self._names.items()}
        self._given, self._batches = {made.get(name, name): size for name, size in given.items()}, batches
        self._values: dict[str, int] = {}
        self._of_dims: dict[str, int] = {}
        self._computed: dict[str, int] = {}
        self._examples: dict[str, int] = {}
        self._at_examples = self._of_examples = False

    def at_examples(self) -> None:
        """Says that shapes hold numbers of a run at example sizes, so that each figure is a guess."""
        self._at_examples = True

    def choose(self, chosen: Callable[[Mapping[str, int], Mapping[str, int]], Mapping[str, int]]) -> None:
        """Replaces the example sizes that were met. `chosen` returns other examples for these, beside other sizes."""
        examples = {name: size for name, size in self._values.items() if self._is_example(name)}
        if examples:
            known = {name: size for name, size in self._values.items() if name not in examples}
            self._examples = dict(chosen(examples, known))
            self._of_dims.clear()
            self._values = {name: self._examples.get(name, size) for name, size in self._values.items()}

    def settle(self, computed: Mapping[str, int]) -> None:
        """Gives symbols that are no dimensions of inputs the sizes that a run of the model showed. They are examples,
        too, if the run was at example sizes."""
        self._of_examples = bool(self.examples())
        self._computed |= computed
        self._of_dims.clear()
        self._values = {name: computed.get(name, size) for name, size in self._values.items()}

    def value(self, dim: Dim) -> int:
        """Returns the size of a dimension, 0 or more."""
        if isinstance(dim, int):
            return dim
        found = self._of_dims.get(dim)
        if found is None:
            found = self._of_dims[dim] = self._value(dim)
        return found

    def product(self, factors: Iterable[Dim]) -> int:
        """Returns the product of dimensions."""
        number = 1
        for dim in factors:
            number *= self.value(dim)
        return number

    def told(self, dim: str) -> str:
        """Returns a dimension with the names of a report."""
        for name in dims.names_in(dim) if self._names else ():
            dim = re.sub(rf"\b{re.escape(name)}\b", self._names.get(name, name), dim)
        return dim

    def guessed(self, of: Iterable[str]) -> bool:
        """Whether one of these dimensions has an example size."""
        if self._at_examples:
            return True
        names = {name for dim in set(of) for name in (dim, *dims.names_in(dim))}
        return any(self._is_example(name) for name in names if name in self._values)

    def used(self) -> dict[str, int]:
        """Returns the sizes of the symbols that were met."""
        return {self.told(name): size for name, size in self._values.items()}

    def unused(self) -> list[str]:
        """Returns the given names that no dimension has."""
        return [name for name in self._given if name not in self._values]

    def examples(self) -> list[str]:
        """Returns the symbols that were met and have an example size."""
        return [self.told(name) for name in self._values if self._is_example(name)]

    def _is_example(self, name: str) -> bool:
        return name not in self._given and (self._of_examples or name not in self._computed)

    def _value(self, dim: str) -> int:
        names = () if dim in self._given else dims.names_in(dim)
        sizes = {name: self._size(name) for name in names}
        found = dims.evaluate(dim, sizes) if names else None
        if found is None:
            return self._noted(dim)
        self._values |= sizes
        return found

    def _noted(self, name: str) -> int:
        return self._values.setdefault(name, self._size(name))

    def _size(self, name: str) -> int:
        if name in self._computed:
            return self._computed[name]
        is_one = name in self._batches or "batch" in name.lower() or name.startswith(UNKNOWN)
        return self._given.get(name, self._examples.get(name, _BATCH if is_one else _OTHER))
