"""Computes with polynomials with integer coefficients over names, rounded quotients, maxima and minima, for
`symbols.py`.

A polynomial is a sorted tuple of terms, so that equal polynomials are equal tuples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Call:
    """A function of polynomials that is not a polynomial itself: `//` (rounded down), `Max`, `Min`, `Broadcast`."""

    name: str
    arguments: tuple[Poly, ...]
    text: str = field(compare=False)


Atom = str | Call
"""Is a name, or a call."""
Monomial = tuple[Atom, ...]
"""Holds factors, sorted by their text. A power repeats its factor; the empty monomial is 1."""
Poly = tuple[tuple[Monomial, int], ...]
"""Holds terms, sorted: monomials with their coefficients."""

_MOST_TERMS = 64
"""Limits the terms of a polynomial. A choice that bounds the cost."""


class UnreadableError(ValueError):
    """The text is not an expression, or the polynomial grows too large."""


def constant(number: int) -> Poly:
    """Returns the polynomial that is a number."""
    return (((), number),) if number else ()


def name(text: str) -> Poly:
    """Returns the polynomial that is a name."""
    return (((text,), 1),)


def is_name(poly: Poly) -> bool:
    """Whether the polynomial is a name."""
    return len(poly) == 1 and poly[0][1] == 1 and len(poly[0][0]) == 1 and isinstance(poly[0][0][0], str)


def as_constant(poly: Poly) -> int | None:
    """Returns the value of a constant polynomial; None for other polynomials."""
    if not poly:
        return 0
    return poly[0][1] if len(poly) == 1 and poly[0][0] == () else None


def add(a: Poly, b: Poly) -> Poly:
    """Returns a + b."""
    terms = Counter(dict(a))
    terms.update(dict(b))
    return _made(terms)


def subtract(a: Poly, b: Poly) -> Poly:
    """Returns a - b."""
    return add(a, scale(b, -1))


def scale(poly: Poly, number: int) -> Poly:
    """Returns the polynomial times a number."""
    return tuple((monomial, factor * number) for monomial, factor in poly) if number else ()


def multiply(a: Poly, b: Poly) -> Poly:
    """Returns a * b."""
    terms: Counter[Monomial] = Counter()
    for left, m in a:
        for right, n in b:
            terms[tuple(sorted((*left, *right), key=text_of))] += m * n
    return _made(terms)


def exact_quotient(a: Poly, b: Poly) -> Poly | None:
    """Returns the polynomial a / b, by long division; None if the quotient is not a polynomial."""
    if not b:
        return None
    quotient: Poly = ()
    lead, factor = _lead(b)
    for _ in range(_MOST_TERMS):
        if not a:
            return quotient
        monomial, number = _lead(a)
        rest = without(monomial, lead)
        if rest is None or number % factor:
            return None
        step: Poly = ((rest, number // factor),)
        quotient = add(quotient, step)
        a = subtract(a, multiply(step, b))
    return None


def floor_divide(poly: Poly, divisor: int) -> Poly:
    """Returns poly / divisor rounded down, for a divisor above 0."""
    whole = _made({monomial: factor // divisor for monomial, factor in poly})
    rest = _made({monomial: factor % divisor for monomial, factor in poly})
    number = as_constant(rest)
    if number is not None:
        return whole  # below the divisor
    common = math.gcd(divisor, *(factor for monomial, factor in rest if monomial))
    # the remainder of constant / `common` is too small to reach the next multiple, so it is dropped
    rest = _made({monomial: factor // common for monomial, factor in rest})
    return add(whole, _quotient(rest, divisor // common))


def _quotient(poly: Poly, divisor: int) -> Poly:
    """Returns floor(poly / divisor) as an atom; nested quotients become one: floor(floor(x/a)/b) = floor(x/(a*b))."""
    inner = [monomial for monomial, factor in poly if monomial]
    if len(inner) == 1 and dict(poly)[inner[0]] == 1 and len(inner[0]) == 1:
        atom = inner[0][0]
        first = as_constant(atom.arguments[1]) if isinstance(atom, Call) and atom.name == "//" else None
        if first is not None and isinstance(atom, Call):
            number = dict(poly).get((), 0)
            return floor_divide(add(atom.arguments[0], constant(number * first)), first * divisor)
    return opaque_quotient(poly, constant(divisor))


def opaque_quotient(a: Poly, b: Poly) -> Poly:
    """Returns floor(a / b) without simplification."""
    return call("//", (a, b))


def call(function: str, given: Sequence[Poly]) -> Poly:
    """Makes a call as a polynomial. The arguments are sorted, except those of `//`."""
    if function == "//":
        left, right = (text(argument) for argument in given)
        right = right if isinstance(right, int) or right.isidentifier() else f"({right})"
        return (((Call("//", tuple(given), f"(({left})//{right})"),), 1),)
    ordered = tuple(sorted(given, key=lambda argument: str(text(argument))))
    inside = ", ".join(str(text(argument)) for argument in ordered)
    return (((Call(function, ordered, f"{function}({inside})"),), 1),)


def arguments(poly: Poly, function: str) -> tuple[Poly, ...]:
    """Returns the arguments if the polynomial is a single call of this function, else an empty tuple."""
    if len(poly) != 1 or poly[0][1] != 1 or len(poly[0][0]) != 1:
        return ()
    atom = poly[0][0][0]
    return atom.arguments if isinstance(atom, Call) and atom.name == function else ()


def text(poly: Poly) -> int | str:
    """Returns the number of a constant polynomial, otherwise the polynomial as text."""
    number = as_constant(poly)
    if number is not None:
        return number
    written = ""
    for monomial, factor in sorted(poly, key=lambda term: (not term[0], term[1] < 0)):
        body = "*".join(text_of(atom) for atom in monomial)
        size = abs(factor)
        part = str(size) if not monomial else body if size == 1 else f"{size}*{body}"
        sign = "-" if factor < 0 else "+"
        written += f" {sign} {part}" if written else part if factor > 0 else f"-{part}"
    return written


def names(poly: Poly) -> Iterator[str]:
    """Yields the names in a polynomial, those in calls too."""
    for monomial, _ in poly:
        for atom in monomial:
            if isinstance(atom, str):
                yield atom
            else:
                for argument in atom.arguments:
                    yield from names(argument)


def grows(poly: Poly) -> bool:
    """Whether no term of the sum shrinks when a name grows."""
    return all(factor > 0 and len(monomial) == 1 and _grows(monomial[0]) for monomial, factor in poly if monomial)


def _grows(atom: Atom) -> bool:
    if isinstance(atom, str):
        return True
    if atom.name == "//":
        return grows(atom.arguments[0]) and as_constant(atom.arguments[1]) is not None
    return all(map(grows, atom.arguments))


def value(poly: Poly, number: int) -> int:
    """Returns the value of the polynomial with this number for every name."""
    return sum(factor * math.prod(_value(atom, number) for atom in monomial) for monomial, factor in poly)


def _value(atom: Atom, number: int) -> int:
    if isinstance(atom, str):
        return number
    arguments = [value(argument, number) for argument in atom.arguments]
    if atom.name == "//":
        return arguments[0] // arguments[1]
    return min(arguments) if atom.name == "Min" else max(arguments)


def _made(terms: Mapping[Monomial, int]) -> Poly:
    kept = [(monomial, factor) for monomial, factor in terms.items() if factor]
    if len(kept) > _MOST_TERMS:
        raise UnreadableError("too many terms")
    return tuple(sorted(kept, key=_order))


def _order(term: tuple[Monomial, int]) -> tuple[int, tuple[str, ...]]:
    monomial, _ = term
    return len(monomial), tuple(text_of(atom) for atom in monomial)


def _lead(poly: Poly) -> tuple[Monomial, int]:
    return max(poly, key=_order)


def without(monomial: Monomial, part: Monomial) -> Monomial | None:
    """Returns monomial / part; None if `part` does not divide it."""
    left = Counter(monomial)
    left.subtract(Counter(part))
    if any(number < 0 for number in left.values()):
        return None
    return tuple(sorted(left.elements(), key=text_of))


def text_of(atom: Atom) -> str:
    return atom if isinstance(atom, str) else atom.text


Functions = Mapping[str, Callable[[Sequence[Poly]], Poly]]
"""Maps function names in a text, `//` included, to constructors of calls."""
