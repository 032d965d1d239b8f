"""Computes with integer expressions over symbolic dimensions, in a canonical form.

An element is an int or the text of an expression. Shape inference and rules exchange such texts: `n + 1`, `2*batch*n`,
`((n - 1)//4)`, `Max(0, n - 2)`, `Mod(n, 3)`. Texts of the same polynomial over names and rounded quotients have the
same canonical text, so equality of expressions is equality of texts.

A name stands for a dimension, so it is 0 or more; empty inputs are allowed. Inside `assuming`, names have the least
sizes given there. A divisor is assumed not to be 0, because a runtime fails there."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache

from onnxsmith.graph.shapes import bounds, expressions, polynomial_extremes, polynomials
from onnxsmith.graph.shapes.bounds import LEAST, Least
from onnxsmith.graph.shapes.polynomials import Poly, UnreadableError

Element = int | str
"""Is an integer, or the text of an expression."""

_MOST_SIZE = 1 << 24
"""Limits the numbers that `needed` tries as a least size. A choice that bounds the search."""
_MOST_NAMES = 64
"""Limits the different expressions in a sum. A choice: the most terms of a polynomial."""


@contextmanager
def assuming(least: Mapping[str, int] | Least) -> Iterator[None]:
    """Assumes inside the block that these names have at least these values. This costs nothing for a set that
    `assumption` made."""
    token = LEAST.set(least if isinstance(least, frozenset) else frozenset(least.items()))
    try:
        yield
    finally:
        LEAST.reset(token)


def assumption(least: Mapping[str, int]) -> Least:
    """Returns the names and their least values as a set, to use in many blocks of `assuming`. Caches recognise the set
    without reading it."""
    return frozenset(least.items())


def assumptions() -> Least:
    """Returns the current assumptions, as a cache key."""
    return LEAST.get()


def needed(element: Element) -> dict[str, int]:
    """Returns the least value of each name for which an expression is above 0. Handles products of names, and
    expressions that grow with their only name. Returns an empty dictionary for others."""
    try:
        poly = _poly(element, LEAST.get())
    except UnreadableError:
        return {}
    found = set(polynomials.names(poly))
    if len(poly) == 1 and poly[0][1] > 0 and all(isinstance(atom, str) for atom in poly[0][0]):
        return dict.fromkeys(found, 1)
    if len(found) != 1 or not polynomials.grows(poly) or polynomials.value(poly, 0) > 0:
        return {}
    low, high = 0, 1
    while polynomials.value(poly, high) <= 0:
        low, high = high, 2 * high
        if high > _MOST_SIZE:
            return {}
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if polynomials.value(poly, middle) <= 0 else (low, middle)
    return {found.pop(): high}


def canonical(element: Element) -> Element:
    """Returns the canonical form: an int for a constant; a text that is not an expression stays as it is."""
    return element if isinstance(element, int) else _canonical(element, LEAST.get())


@lru_cache(maxsize=4096)
def _canonical(text: str, least: Least) -> Element:
    try:
        return polynomials.text(_poly(text, least))
    except UnreadableError:
        return text


def is_expression(element: Element) -> bool:
    """Whether the text can be parsed; some declared names cannot, because they may contain any character."""
    try:
        _poly(element, LEAST.get())
    except UnreadableError:
        return False
    return True


def add(a: Element, b: Element) -> Element | None:
    """Returns a + b; None if one of them is not an expression."""
    return _binary(polynomials.add, a, b)


def subtract(a: Element, b: Element) -> Element | None:
    """Returns a - b; None if one of them is not an expression."""
    return _binary(polynomials.subtract, a, b)


def multiply(a: Element, b: Element) -> Element | None:
    """Returns a * b; None if one of them is not an expression."""
    return _binary(polynomials.multiply, a, b)


def product(elements: Iterable[Element | None]) -> Element | None:
    """Returns the product of all elements; None if one is unknown."""
    return _folded(multiply, elements, 1)


def total(elements: Iterable[Element | None]) -> Element | None:
    """Returns the sum of all elements; None if one is unknown. Counts equal elements first, so that many equal elements
    cost no more than one."""
    counts = Counter(elements)
    numbers = sum(element * count for element, count in counts.items() if isinstance(element, int))
    terms = [multiply(element, count) for element, count in counts.items() if isinstance(element, str)]
    if None in counts or len(terms) > _MOST_NAMES:
        return None
    return _folded(add, [numbers, *terms], 0)


def floor_divide(a: Element, b: Element) -> Element | None:
    """Returns a / b rounded down. None if it is not exact and b may be negative, or if one is not an expression."""
    exact = exact_quotient(a, b)
    if exact is not None:
        return exact
    least = _bound(b, low=True)
    return _binary(polynomial_extremes.quotient, a, b) if least is not None and least >= 0 else None


def truncate_divide(a: Element, b: Element) -> Element | None:
    """Returns a / b rounded towards 0, like ONNX's Div. None if it is not exact and the signs are unknown."""
    a, b = canonical(a), canonical(b)
    if isinstance(a, int) and isinstance(b, int):
        return None if b == 0 else int(math.copysign(1, a * b)) * (abs(a) // abs(b)) if a else 0
    exact = exact_quotient(a, b)
    if exact is not None:
        return exact
    least = _bound(a, low=True)
    if least is not None and least < 0 and isinstance(b, int) and least > -b:
        top = largest([0, a])  # a value between -b and 0 is rounded to 0
        return None if top is None else floor_divide(top, b)
    return floor_divide(a, b) if least is not None and least >= 0 else None


def exact_quotient(a: Element, b: Element) -> Element | None:
    """Returns the expression q with q * b = a; None if there is none."""
    return _exact_quotient(a, b, LEAST.get())


@lru_cache(maxsize=4096)
def _exact_quotient(a: Element, b: Element, least: Least) -> Element | None:
    try:
        found = polynomials.exact_quotient(_poly(a, least), _poly(b, least))
    except UnreadableError:
        return None
    return None if found is None else polynomials.text(found)


def is_empty_with(a: Element, b: Element) -> bool:
    """Whether b = 0 implies a = 0; b is not negative."""
    try:
        return polynomial_extremes.is_empty_with(_poly(a, LEAST.get()), _poly(b, LEAST.get()))
    except UnreadableError:
        return a == b


def modulo(a: Element, b: Element) -> Element | None:
    """Returns a - b * floor(a / b); None if b may be negative or one of them is not an expression."""
    quotient = floor_divide(a, b)
    back = None if quotient is None else multiply(quotient, b)
    return None if back is None else subtract(a, back)


def largest(elements: Iterable[Element | None]) -> Element | None:
    """Returns the maximum: `Max(…)` of the elements that may be the largest; None if one is unknown."""
    return _extreme("Max", list(elements))


def smallest(elements: Iterable[Element | None]) -> Element | None:
    """Returns the minimum: `Min(…)` of the elements that may be the smallest; None if one is unknown."""
    return _extreme("Min", list(elements))


def at_least(a: Element, b: Element) -> bool:
    """Whether a >= b for all sizes, empty ones too."""
    return _at_least(a, b, LEAST.get())


@lru_cache(maxsize=4096)
def _at_least(a: Element, b: Element, least: Least) -> bool:
    try:
        return polynomial_extremes.dominates(_poly(a, least), _poly(b, least))
    except UnreadableError:
        return False


def differ(a: Element, b: Element) -> bool:
    """Whether a != b for all sizes, empty ones too."""
    difference = subtract(a, b)
    if difference is None:
        return False
    low, high = (_bound(difference, low=low) for low in (True, False))
    return (low is not None and low > 0) or (high is not None and high < 0)


def broadcast(elements: Iterable[Element | None]) -> Element | None:
    """Returns the broadcast of dimensions that are assumed to be compatible: the dimension that is not 1, or
    `Broadcast(…)` if that is undecided."""
    given = list(elements)
    known = [element for element in given if element is not None]
    sizes = [element for element in known if isinstance(element, int) and element != 1]
    if sizes:
        return sizes[0]
    if len(known) < len(given):
        return None
    names = tuple(dict.fromkeys(element for element in known if isinstance(element, str)))
    if len(names) < 2:
        return names[0] if names else 1
    return _broadcast(names, LEAST.get())


@lru_cache(maxsize=4096)
def _broadcast(names: tuple[str, ...], least: Least) -> Element | None:
    try:
        return polynomials.text(polynomial_extremes.broadcast([_poly(name, least) for name in names]))
    except UnreadableError:
        return None


def covers(dim: Element | None, other: Element | None) -> bool:
    """Whether broadcasting `dim` with the compatible `other` gives `dim`."""
    return dim is not None and (dim == other or (dim != 1 and broadcast([dim, other]) == dim))


def is_size(element: Element, *, positive: bool) -> bool:
    """Whether the element is 0 or more (with `positive`: 1 or more) for all sizes."""
    least = _bound(element, low=True)
    return least is not None and least >= int(positive)


def fits(element: Element, low: int, high: int, most: int) -> bool:
    """Whether an expression stays between two numbers, both included, if no product of names exceeds `most`. Tells
    whether an integer dtype can hold the expression."""
    if isinstance(element, int):
        return low <= element <= high
    return _fits(element, LEAST.get(), low, high, most)


@lru_cache(maxsize=4096)
def _fits(text: str, least: Least, low: int, high: int, most: int) -> bool:
    try:
        first, last = bounds.extent(_poly(text, least), most)
    except UnreadableError:
        return True  # a name with odd characters is a size, which fits
    return low <= first and last <= high


def names(element: Element) -> frozenset[str]:
    """Returns the names in an expression; the text itself if it is not an expression."""
    if isinstance(element, int):
        return frozenset()
    try:
        return frozenset(polynomials.names(_poly(element, LEAST.get())))
    except UnreadableError:
        return frozenset({element})


@lru_cache(maxsize=4096)
def _poly(element: Element, _: Least) -> Poly:
    """Returns the polynomial of an element. The second argument is only the cache key: assumptions decide how a Max is
    simplified."""
    return (
        polynomials.constant(element)
        if isinstance(element, int)
        else expressions.read(element, polynomial_extremes.CALLS)
    )


def _binary(operation: Callable[[Poly, Poly], Poly], a: Element, b: Element) -> Element | None:
    return _computed(operation, a, b, LEAST.get())


@lru_cache(maxsize=8192)
def _computed(operation: Callable[[Poly, Poly], Poly], a: Element, b: Element, least: Least) -> Element | None:
    try:
        return polynomials.text(operation(_poly(a, least), _poly(b, least)))
    except UnreadableError:
        return None


def _folded(
    operation: Callable[[Element, Element], Element | None], elements: Iterable[Element | None], start: int
) -> Element | None:
    result: Element | None = start
    for element in elements:
        if result is None or element is None:
            return None
        result = operation(result, element)
    return result


def _extreme(name: str, elements: list[Element | None]) -> Element | None:
    known = [element for element in elements if element is not None]
    if len(known) < len(elements) or not known:
        return None
    try:
        return polynomials.text(polynomial_extremes.extreme(name, [_poly(element, LEAST.get()) for element in known]))
    except UnreadableError:
        return None


def _bound(element: Element, *, low: bool) -> int | None:
    if isinstance(element, int):
        return element
    try:
        return bounds.limit(_poly(element, LEAST.get()), low=low)
    except UnreadableError:
        return None
