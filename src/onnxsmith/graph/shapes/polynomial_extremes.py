"""Computes maxima, minima, broadcasts and rounded quotients of polynomials, simplified as far as the bounds allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from onnxsmith.graph.shapes import bounds, expressions, polynomials
from onnxsmith.graph.shapes.polynomials import Poly, UnreadableError


def extreme(name: str, given: Sequence[Poly]) -> Poly:
    kept: list[Poly] = []
    for poly in dict.fromkeys(given):
        if any(_beats(name, other, poly) for other in kept):
            continue
        kept = [other for other in kept if not _beats(name, poly, other)]
        kept.append(poly)
    return kept[0] if len(kept) == 1 else polynomials.call(name, kept)


def broadcast(given: Sequence[Poly]) -> Poly:
    """Returns the broadcast of dimensions. Drops a dimension if it must be 1 or equal to another dimension."""
    parts = [part for poly in given for part in polynomials.arguments(poly, "Broadcast") or (poly,)]
    # a number other than 1 decides: every other dimension must equal it or be 1
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
    """Whether the broadcast of both is `a`: if `a` is a multiple of `b`, or is never smaller than `b` and is 0 if `b`
    is 0."""
    if polynomials.is_name(a) and polynomials.is_name(b):
        return a == b  # the rest would find the same, and a broadcast may have hundreds of names
    if polynomials.exact_quotient(a, b) is not None:
        return True
    least = bounds.limit(b, low=True)
    return least is not None and least >= 0 and dominates(a, b) and is_empty_with(a, b)


def is_empty_with(a: Poly, b: Poly) -> bool:
    """Whether b = 0 implies a = 0; `b` is not negative."""
    least, common = bounds.limit(b, low=True), math.gcd(*(factor for _, factor in b))
    if (least is not None and least > 0) or polynomials.exact_quotient(polynomials.scale(a, common), b) is not None:
        return True
    smallest, largest = polynomials.arguments(b, "Min"), polynomials.arguments(b, "Max")
    return (bool(smallest) and all(is_empty_with(a, one) for one in smallest)) or any(
        is_empty_with(a, one) for one in largest
    )


def _beats(name: str, a: Poly, b: Poly) -> bool:
    """Whether `a` makes `b` redundant in a Max or Min."""
    return dominates(a, b) if name == "Max" else dominates(b, a)


def dominates(a: Poly, b: Poly) -> bool:
    """Whether a >= b for all sizes: by the bound of a - b, or through the arguments of a Max or Min in either."""
    least = bounds.limit(polynomials.subtract(a, b), low=True)
    if least is not None and least >= 0:
        return True
    # a Max is at least each of its arguments, and a Min at most
    above = [dominates(one, b) for one in polynomials.arguments(a, "Max")]
    below = [dominates(a, one) for one in polynomials.arguments(b, "Min")]
    all_above = [dominates(one, b) for one in polynomials.arguments(a, "Min")]
    all_below = [dominates(a, one) for one in polynomials.arguments(b, "Max")]
    return any((*above, *below)) or any(every and all(every) for every in (all_above, all_below))


def quotient(a: Poly, b: Poly) -> Poly:
    """Returns a / b rounded down, for b above 0."""
    exact = polynomials.exact_quotient(a, b)
    if exact is not None:
        return exact
    divisor = polynomials.as_constant(b)
    if divisor is None:
        return polynomials.opaque_quotient(a, b)
    if divisor <= 0:
        raise UnreadableError("a divisor that is not above 0")
    return polynomials.floor_divide(a, divisor)


def _call(name: str) -> expressions.Call:
    return lambda arguments: extreme(name, arguments)


def _mod(arguments: Sequence[Poly]) -> Poly:
    a, b = arguments
    return polynomials.subtract(a, polynomials.multiply(b, quotient(a, b)))


CALLS: Mapping[str, expressions.Call] = {
    "Broadcast": lambda arguments: broadcast(arguments),
    "max": _call("Max"),
    "Max": _call("Max"),
    "min": _call("Min"),
    "Min": _call("Min"),
    "mod": _mod,
    "Mod": _mod,
    "//": lambda arguments: quotient(*arguments),
}
