"""Integer expressions over symbolic dimensions, in one form for all that are equal as polynomials.

An element is an int or the text of an expression. Texts are the interface, to shape inference and to rules: `n + 1`,
`2*batch*n`, `((n - 1)//4)`, `Max(0, n - 2)`, `Mod(n, 3)`. Two texts that mean the same polynomial over names and
rounded quotients have one canonical text, so that equality is equality of texts.

A name stands for a dimension, so it is 0 or more. Where arithmetic rounds, a name that a model declares is taken to be
1 or more, as shape inference does: nothing can be read from an empty tensor. What decides values (`at_least`, `differ`)
takes every name to be 0 or more, because models ask whether an input is empty. Inside `assuming` names have the least
sizes that are given there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache

from onnxsmith.model import expressions, polynomials
from onnxsmith.model.polynomials import Atom, Monomial, Poly, UnreadableError

Element = int | str
"""An integer, or the text of an expression."""

_GENERATED = re.compile(r"_d\d+")
"""What shape inference calls dimensions that depend on data, which may well be 0."""
_MOST_SIZE = 1 << 24


_Least = frozenset[tuple[str, int]]
_LEAST: ContextVar[_Least] = ContextVar("least", default=frozenset())


@contextmanager
def assuming(least: Mapping[str, int]) -> Iterator[None]:
    """Inside, these names are known to be at least so large."""
    token = _LEAST.set(frozenset(least.items()))
    try:
        yield
    finally:
        _LEAST.reset(token)


def smallest_size(element: Element) -> tuple[str, int] | None:
    """The name in an expression that has one, and grows with it, and the least that it is where the expression is above
    0; None where that says nothing."""
    try:
        poly = _poly(element, _LEAST.get())
    except UnreadableError:
        return None
    found = set(polynomials.names(poly))
    if len(found) != 1 or not polynomials.grows(poly):
        return None
    name = found.pop()
    low, high = 0, 1
    while polynomials.value(poly, high) <= 0:
        low, high = high, 2 * high
        if high > _MOST_SIZE:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if polynomials.value(poly, middle) <= 0 else (low, middle)
    return name, high


def canonical(element: Element) -> Element:
    """The one form of an expression: an int where it is one; a text that is no expression stays as it is."""
    return element if isinstance(element, int) else _canonical(element, _LEAST.get())


@lru_cache(maxsize=4096)
def _canonical(text: str, least: _Least) -> Element:
    try:
        return polynomials.text(_poly(text, least))
    except UnreadableError:
        return text


def is_expression(element: Element) -> bool:
    """Whether it can be computed with: a declared name may hold any character."""
    try:
        _poly(element, _LEAST.get())
    except UnreadableError:
        return False
    return True


def add(a: Element, b: Element) -> Element | None:
    """a + b; None where one of them is no expression."""
    return _binary(polynomials.add, a, b)


def subtract(a: Element, b: Element) -> Element | None:
    """a - b; None where one of them is no expression."""
    return _binary(polynomials.subtract, a, b)


def multiply(a: Element, b: Element) -> Element | None:
    """a * b; None where one of them is no expression."""
    return _binary(polynomials.multiply, a, b)


def product(elements: Iterable[Element | None]) -> Element | None:
    """All of them multiplied; None where one is unknown."""
    return _folded(multiply, elements, 1)


def total(elements: Iterable[Element | None]) -> Element | None:
    """All of them added; None where one is unknown."""
    return _folded(add, elements, 0)


def floor_divide(a: Element, b: Element) -> Element | None:
    """a / b rounded down. None where it is not exact and b may be below 0, or one of them is no expression."""
    exact = exact_quotient(a, b)
    if exact is not None:
        return exact
    least = _bound(b, low=True, declared=1)
    return _binary(_quotient, a, b) if least is not None and least >= 0 else None


def truncate_divide(a: Element, b: Element) -> Element | None:
    """a / b rounded towards 0, as ONNX's Div does. None where the sign is not known and the quotient is not exact."""
    a, b = canonical(a), canonical(b)
    if isinstance(a, int) and isinstance(b, int):
        return None if b == 0 else int(math.copysign(1, a * b)) * (abs(a) // abs(b)) if a else 0
    exact = exact_quotient(a, b)
    if exact is not None:
        return exact
    least = _bound(a, low=True, declared=1)
    return floor_divide(a, b) if least is not None and least >= 0 else None


def exact_quotient(a: Element, b: Element) -> Element | None:
    """The expression that gives `a` when it is multiplied by `b`; None where there is none."""
    try:
        found = polynomials.exact_quotient(_poly(a, _LEAST.get()), _poly(b, _LEAST.get()))
    except UnreadableError:
        return None
    return None if found is None else polynomials.text(found)


def modulo(a: Element, b: Element) -> Element | None:
    """a - b * floor(a / b); None where b may be below 0 or one of them is no expression."""
    quotient = floor_divide(a, b)
    back = None if quotient is None else multiply(quotient, b)
    return None if back is None else subtract(a, back)


def largest(elements: Iterable[Element | None]) -> Element | None:
    """The largest of them, as `Max(…)` of those that may be it."""
    return _extreme("Max", list(elements))


def smallest(elements: Iterable[Element | None]) -> Element | None:
    """The smallest of them, as `Min(…)` of those that may be it."""
    return _extreme("Min", list(elements))


def at_least(a: Element, b: Element) -> bool:
    """Whether a >= b for all sizes, empty ones too."""
    try:
        return _dominates(_poly(a, _LEAST.get()), _poly(b, _LEAST.get()), declared=0)
    except UnreadableError:
        return False


def differ(a: Element, b: Element) -> bool:
    """Whether a != b for all sizes, empty ones too."""
    difference = subtract(a, b)
    if difference is None:
        return False
    low, high = (_bound(difference, low=low, declared=0) for low in (True, False))
    return (low is not None and low > 0) or (high is not None and high < 0)


def broadcast(elements: Iterable[Element | None]) -> Element | None:
    """The dimension that these give together where they go together: the one that is not 1, as `Broadcast(…)` where
    that is not decided."""
    given = list(elements)
    known = [element for element in given if element is not None]
    sizes = [element for element in known if isinstance(element, int) and element != 1]
    if sizes:
        return sizes[0]
    if len(known) < len(given):
        return None
    names = list(dict.fromkeys(element for element in known if isinstance(element, str)))
    if len(names) < 2:
        return names[0] if names else 1
    try:
        return polynomials.text(_broadcast([_poly(name, _LEAST.get()) for name in names]))
    except UnreadableError:
        return None


def covers(dim: Element | None, other: Element | None) -> bool:
    """Whether what goes together with `dim` in a broadcast leaves it as it is."""
    return dim is not None and (dim == other or (dim != 1 and broadcast([dim, other]) == dim))


def is_size(element: Element, *, positive: bool) -> bool:
    """Whether it is 0 or more, or 1 or more, where no declared dimension is empty."""
    least = _bound(element, low=True, declared=1)
    return least is not None and least >= int(positive)


def names(element: Element) -> frozenset[str]:
    """The names in an expression; the text itself where it is none."""
    if isinstance(element, int):
        return frozenset()
    try:
        return frozenset(polynomials.names(_poly(element, _LEAST.get())))
    except UnreadableError:
        return frozenset({element})


@lru_cache(maxsize=4096)
def _poly(element: Element, _: _Least) -> Poly:
    """The polynomial; what is assumed decides what is left of a Max or Min."""
    return polynomials.constant(element) if isinstance(element, int) else expressions.read(element, _CALLS)


def _binary(operation: Callable[[Poly, Poly], Poly], a: Element, b: Element) -> Element | None:
    try:
        return polynomials.text(operation(_poly(a, _LEAST.get()), _poly(b, _LEAST.get())))
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
        return polynomials.text(_extreme_poly(name, [_poly(element, _LEAST.get()) for element in known]))
    except UnreadableError:
        return None


def _extreme_poly(name: str, given: Sequence[Poly]) -> Poly:
    kept: list[Poly] = []
    for poly in dict.fromkeys(given):
        if any(_beats(name, other, poly) for other in kept):
            continue
        kept = [other for other in kept if not _beats(name, poly, other)]
        kept.append(poly)
    return kept[0] if len(kept) == 1 else polynomials.call(name, kept)


def _broadcast(given: Sequence[Poly]) -> Poly:
    """What one is always at least does not show: it is 1 or the same."""
    parts = [part for poly in given for part in polynomials.arguments(poly, "Broadcast") or (poly,)]
    sizes = [part for part in parts if polynomials.as_constant(part) not in (None, 1)]
    if sizes:
        return sizes[0]
    kept: list[Poly] = []
    for poly in dict.fromkeys(parts):
        if polynomials.as_constant(poly) == 1 or any(_outgrows(other, poly) for other in kept):
            continue
        kept = [other for other in kept if not _outgrows(poly, other)]
        kept.append(poly)
    if len(kept) < 2:
        return kept[0] if kept else polynomials.constant(1)
    return polynomials.call("Broadcast", kept)


def _outgrows(a: Poly, b: Poly) -> bool:
    least = _poly_bound(b, low=True, declared=1)
    return least is not None and least > 0 and _dominates(a, b, declared=1)


def _beats(name: str, a: Poly, b: Poly) -> bool:
    """Whether `a` makes `b` superfluous in a Max or Min."""
    return _dominates(a, b, declared=1) if name == "Max" else _dominates(b, a, declared=1)


def _dominates(a: Poly, b: Poly, *, declared: int) -> bool:
    """Whether a >= b: by their difference, or because b is the least, or a the largest, of what does."""
    least = _poly_bound(polynomials.subtract(a, b), low=True, declared=declared)
    if least is not None and least >= 0:
        return True
    above = [_dominates(one, b, declared=declared) for one in polynomials.arguments(a, "Max")]
    below = [_dominates(a, one, declared=declared) for one in polynomials.arguments(b, "Min")]
    all_above = [_dominates(one, b, declared=declared) for one in polynomials.arguments(a, "Min")]
    all_below = [_dominates(a, one, declared=declared) for one in polynomials.arguments(b, "Max")]
    return any((*above, *below)) or any(every and all(every) for every in (all_above, all_below))


def _quotient(a: Poly, b: Poly) -> Poly:
    """a / b rounded down, for b above 0."""
    exact = polynomials.exact_quotient(a, b)
    if exact is not None:
        return exact
    divisor = polynomials.as_constant(b)
    if divisor is None:
        return polynomials.opaque_quotient(a, b)
    if divisor <= 0:
        raise UnreadableError("a divisor that is not above 0")
    return polynomials.floor_divide(a, divisor)


def _bound(element: Element, *, low: bool, declared: int) -> int | None:
    if isinstance(element, int):
        return element
    try:
        return _poly_bound(_poly(element, _LEAST.get()), low=low, declared=declared)
    except UnreadableError:
        return None


def _poly_bound(poly: Poly, *, low: bool, declared: int) -> int | None:
    """The least or the largest that a polynomial can be, as far as its terms tell by themselves."""
    bound = 0
    for monomial, factor in poly:
        part = _monomial_bound(monomial, low=low == (factor > 0), declared=declared)
        if part is None:
            return None
        bound += factor * part
    return bound


def _monomial_bound(monomial: Monomial, *, low: bool, declared: int) -> int | None:
    """A product's bound, where every factor is 0 or more; that of one factor by itself."""
    if len(monomial) == 1:
        return _atom_bound(monomial[0], low=low, declared=declared)
    least = [_atom_bound(atom, low=True, declared=declared) for atom in monomial]
    if any(bound is None or bound < 0 for bound in least):
        return None
    bounds = least if low else [_atom_bound(atom, low=False, declared=declared) for atom in monomial]
    return None if None in bounds else math.prod(bound for bound in bounds if bound is not None)


def _atom_bound(atom: Atom, *, low: bool, declared: int) -> int | None:
    if isinstance(atom, str):
        given = max((least for name, least in _LEAST.get() if name == atom), default=0)
        return None if not low else max(given, 0 if _GENERATED.fullmatch(atom) else declared)
    if atom.name == "//":
        top, bottom = atom.arguments
        divisor = polynomials.as_constant(bottom)
        bound = _poly_bound(top, low=low, declared=declared)
        if divisor is not None:
            return None if bound is None else bound // divisor
        return 0 if low and bound is not None and bound >= 0 else None
    bounds = [_poly_bound(argument, low=low, declared=declared) for argument in atom.arguments]
    known = [bound for bound in bounds if bound is not None]
    if atom.name == "Broadcast":  # one of them, and not 1 where another is not
        return None if len(known) < len(bounds) else max(known) if min(known) > 0 or not low else min(known)
    if len(known) == len(bounds) or (known and low == (atom.name == "Max")):
        return max(known) if atom.name == "Max" else min(known)
    return None


def _call(name: str) -> expressions.Call:
    return lambda arguments: _extreme_poly(name, arguments)


def _mod(arguments: Sequence[Poly]) -> Poly:
    a, b = arguments
    return polynomials.subtract(a, polynomials.multiply(b, _quotient(a, b)))


_CALLS: Mapping[str, expressions.Call] = {
    "Broadcast": lambda arguments: _broadcast(arguments),
    "max": _call("Max"),
    "Max": _call("Max"),
    "min": _call("Min"),
    "Min": _call("Min"),
    "mod": _mod,
    "Mod": _mod,
    "//": lambda arguments: _quotient(*arguments),
}
