"""Gives a dimension with a generated name the name that the model declares for the same size.

Two sizes are the same if inference said so (`symbolic_equalities`), or if a Reshape keeps the number of elements: from
`[a, b] -> [_d0, b]` follows `_d0 = a`. Common factors are divided out, as every size is assumed to be above 0; where a
size is 0, no element has a place, so no run shows the difference."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import onnx_ir as ir

from onnxsmith.graph.shapes import expressions, polynomial_extremes, polynomials
from onnxsmith.graph.shapes.polynomials import Atom, Poly, UnreadableError
from onnxsmith.graph.structure import walk

_NAME = re.compile(r"[^\W\d][\w.]*")
_ROUNDS = 8
"""Limits how often expressions are replaced in each other. A choice: chains are short."""


def adopt(context: Any, model: ir.Model) -> None:
    """Renames the dimensions of a model that `context` inferred. Sizes of Reshapes count only in graphs, not in
    functions."""
    known = _Known(context.is_generated_symbol)
    graphs = list(walk.main_graphs(model))
    for one, other in context.symbolic_equalities:
        known.equate(one, other)
    for before, after in dict.fromkeys(_reshapes(graphs)):
        known.equate_sizes(before, after)
    new = known.solved()
    if new is None:
        return
    for value in walk.values_of(graphs):
        shape = value.shape
        if shape is None or all(isinstance(dim, int) or dim.value is None for dim in shape):
            continue
        dims = [dim if isinstance(dim, int) or dim.value is None else new(dim.value) for dim in shape]
        if any(one != other for one, other in zip(dims, shape, strict=True)):
            value.shape = ir.Shape(dims)


def _reshapes(graphs: Sequence[ir.Graph]) -> Iterator[tuple[Poly, Poly]]:
    """Yields the numbers of elements in front of and behind each Reshape."""
    for node in (node for graph in graphs for node in graph):
        if node.op_type == "Reshape" and not node.domain and node.inputs and node.inputs[0] is not None:
            sizes = _elements(node.inputs[0].shape), _elements(node.outputs[0].shape)
            if sizes[0] is not None and sizes[1] is not None and sizes[0] != sizes[1]:
                yield sizes[0], sizes[1]


def _elements(shape: ir.Shape | None) -> Poly | None:
    """Returns the product of the dimensions; None if one is unknown."""
    product = polynomials.constant(1)
    for dim in shape if shape is not None else (None,):
        text = dim if isinstance(dim, int) or dim is None else dim.value
        try:
            size = polynomials.constant(text) if isinstance(text, int) else _read(text or "")
        except UnreadableError:
            return None
        product = polynomials.multiply(product, size)
    return product


@dataclass
class _Known:
    """The equalities that are known: names in one class, and expressions of declared names."""

    is_generated: Callable[[str], bool]
    _class_of: dict[str, str] = field(default_factory=dict)
    _expressions: list[tuple[Poly, str]] = field(default_factory=list)
    _texts: dict[str, str] = field(default_factory=dict)
    """Names for texts that are no expressions, such as `Unsqueeze/rnn/output_0_dim_1`."""

    def equate(self, one: str, other: str) -> None:
        """Notes that two expressions have the same value."""
        try:
            a, b = _read(one), _read(other)
        except UnreadableError:
            for text, name in ((one, other), (other, one)):
                if name.isidentifier() and not text.isidentifier() and not self.is_generated(name):
                    self._texts[text] = name
            return
        self.equate_sizes(a, b)

    def equate_sizes(self, a: Poly, b: Poly) -> None:
        """Notes that two expressions have the same value."""
        a, b = _reduced(a, b)
        pair = [_single((term,)) for term in _positive(polynomials.subtract(a, b))]
        if len(pair) == 2 and all(pair):
            self._class_of[self._first(pair[0])] = self._first(pair[1])
            return
        names = _single(a), _single(b)
        for source, target in ((a, names[1]), (b, names[0])):
            if target and not self.is_generated(target) and polynomials.as_constant(source) is None:
                self._expressions.append((source, target))
                return

    def solved(self) -> Callable[[str], str | int] | None:
        """Returns a function that rewrites the text of a dimension; None if nothing is to be rewritten."""
        classes: dict[str, list[str]] = {}
        for name in {*self._class_of, *self._class_of.values()}:
            classes.setdefault(self._first(name), []).append(name)
        names: dict[str, str] = {}
        for members in classes.values():
            declared = [name for name in members if not self.is_generated(name)]
            chosen = min(declared or members, key=lambda name: (len(name), name))
            names |= {name: chosen for name in members if name != chosen and self.is_generated(name)}
        sources = [
            (_read(_renamed(str(polynomials.text(source)), names)), target) for source, target in self._expressions
        ]
        return _rewriting(names, sources, self._texts) if names or sources or self._texts else None

    def _first(self, name: str) -> str:
        while name in self._class_of and self._class_of[name] != name:
            name = self._class_of[name]
        return name


def _rewriting(
    names: Mapping[str, str], sources: Sequence[tuple[Poly, str]], texts: Mapping[str, str]
) -> Callable[[str], str | int]:
    done: dict[str, str | int] = {**texts}

    def new(text: str) -> str | int:
        if text not in done:
            done[text] = _rewritten(text, names, sources)
        return done[text]

    return new


def _rewritten(text: str, names: Mapping[str, str], sources: Sequence[tuple[Poly, str]]) -> str | int:
    renamed = _renamed(text, names)
    try:
        poly = before = _read(renamed)
        for _ in range(_ROUNDS):
            start = poly
            for source, target in sources:
                poly = _replaced(poly, source, target)
            if poly == start:
                break
    except UnreadableError:
        return renamed
    return text if renamed == text and poly == before else polynomials.text(poly)


def _replaced(poly: Poly, source: Poly, target: str) -> Poly:
    """Puts a name in place of an expression: of the whole polynomial, of a factor of its terms, or in its calls."""
    if poly == source:
        return polynomials.name(target)
    part, number = source[0] if len(source) == 1 else (None, 1)
    made: Poly = ()
    for monomial, factor in poly:
        rest = polynomials.without(monomial, part) if part is not None and factor % number == 0 else None
        if rest is not None:
            term = polynomials.scale(polynomials.name(target), factor // number)
            monomial = rest
        else:
            term = polynomials.constant(factor)
        for atom in monomial:
            term = polynomials.multiply(term, _in_call(atom, source, target))
        made = polynomials.add(made, term)
    return made


def _in_call(atom: Atom, source: Poly, target: str) -> Poly:
    if isinstance(atom, str):
        return polynomials.name(atom)
    new = [_replaced(argument, source, target) for argument in atom.arguments]
    return ((((atom,)), 1),) if tuple(new) == atom.arguments else polynomials.call(atom.name, new)


def _reduced(a: Poly, b: Poly) -> tuple[Poly, Poly]:
    """Divides both sides by their common factors: numbers, names, and the rest of one side if it divides the other."""
    if not a or not b:
        return a, b
    common = _content((*a, *b))
    a, b = _quotient(a, common), _quotient(b, common)
    for one, other, is_first in ((a, b, True), (b, a, False)):
        content = _content(one)
        rest = _quotient(one, content)
        whole = polynomials.exact_quotient(other, rest)
        if whole is not None and polynomials.as_constant(rest) is None:
            return (content, whole) if is_first else (whole, content)
    return a, b


def _content(terms: Poly) -> Poly:
    """Returns the numbers and names that divide all terms, as a polynomial of one term."""
    shared = Counter(terms[0][0])
    for monomial, _ in terms:
        shared &= Counter(monomial)
    return ((tuple(sorted(shared.elements(), key=polynomials.text_of)), math.gcd(*(factor for _, factor in terms))),)


def _quotient(a: Poly, b: Poly) -> Poly:
    found = polynomials.exact_quotient(a, b)
    return a if found is None else found


def _positive(difference: Poly) -> Poly:
    """Returns the two terms of `n*x - n*y` as `x` and `y`; no terms for other differences."""
    if len(difference) != 2 or difference[0][1] != -difference[1][1]:
        return ()
    return tuple((monomial, 1) for monomial, _ in difference)


def _single(poly: Poly) -> str:
    """Returns the name that a polynomial is; "" if it is no name."""
    is_atom = len(poly) == 1 and poly[0][1] == 1 and len(poly[0][0]) == 1
    return poly[0][0][0] if is_atom and isinstance(poly[0][0][0], str) else ""


@lru_cache(maxsize=4096)
def _read(text: str) -> Poly:
    return expressions.read(text, polynomial_extremes.CALLS)


def _renamed(text: str, names: Mapping[str, str]) -> str:
    return _NAME.sub(lambda found: names.get(found[0], found[0]), text)
