"""Parses the text of an expression over symbolic dimensions; nothing is evaluated as Python.

The grammar has sums, products, powers, calls, and quotients that are rounded down (`//`, or `floor` of a fraction) or
up (`ceiling` of a fraction). Fractions may appear inside; the result must have integer coefficients."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from onnxsmith.graph.shapes import polynomials
from onnxsmith.graph.shapes.polynomials import Poly, UnreadableError

Call = Callable[[Sequence[Poly]], Poly]
_TOKEN = re.compile(r"\s*(?:(\d+(?:\.\d+)?)|([^\W\d][\w.]*)|(\*\*|//|[-+*/%(),]))")
_MOST_POWER = 8
"""Limits the exponent. A choice: a tensor has few axes, and larger powers make huge polynomials."""
_Ratio = tuple[Poly, Poly]
"""Holds the numerator and the denominator."""


def read(text: str, calls: Mapping[str, Call]) -> Poly:
    """Parses a text into a polynomial. `calls` has functions for the parts that are not polynomials: `//`, `Mod`, `Max`
    and so on.

    Raises:
        UnreadableError: the text is not an expression, or has fractional coefficients.
    """
    if text.isidentifier():
        return polynomials.name(text)
    reader = _Reader(text, calls)
    ratio = reader.sum()
    if reader.token:
        raise UnreadableError(text)
    return _whole(ratio)


class _Reader:
    """A recursive descent parser; `token` is the next token, empty at the end."""

    def __init__(self, text: str, calls: Mapping[str, Call]) -> None:
        self._text = text
        self._calls = calls
        self._at = 0
        self.token = ""
        self._next()

    def _next(self) -> str:
        before = self.token
        match = _TOKEN.match(self._text, self._at)
        if match is None and self._text[self._at :].strip():
            raise UnreadableError(self._text)
        self.token = match[0].strip() if match is not None else ""
        self._at = match.end() if match is not None else self._at
        return before

    def _take(self, token: str) -> bool:
        if self.token != token:
            return False
        self._next()
        return True

    def sum(self) -> _Ratio:
        left = self._term()
        while self.token in ("+", "-"):
            sign = 1 if self._next() == "+" else -1
            a, b = left, self._term()
            top = polynomials.add(
                polynomials.multiply(a[0], b[1]), polynomials.scale(polynomials.multiply(b[0], a[1]), sign)
            )
            left = top, polynomials.multiply(a[1], b[1])
        return left

    def _term(self) -> _Ratio:
        left = self._power()
        while self.token in ("*", "/", "//", "%"):
            operator, right = self._next(), self._power()
            if operator == "*":
                left = polynomials.multiply(left[0], right[0]), polynomials.multiply(left[1], right[1])
                continue
            a, b = polynomials.multiply(left[0], right[1]), polynomials.multiply(left[1], right[0])
            if operator == "/":
                left = a, b
            elif operator == "//":
                left = self._call("//", [a, b])
            else:
                left = self._call("Mod", [_whole(left), _whole(right)])
        return left

    def _power(self) -> _Ratio:
        if self._take("-"):
            top, bottom = self._power()
            return polynomials.scale(top, -1), bottom
        base = self._primary()
        if not self._take("**"):
            return base
        exponent = polynomials.as_constant(_whole(self._power()))
        if exponent is None or not 0 <= exponent <= _MOST_POWER:
            raise UnreadableError(self._text)
        result: _Ratio = (polynomials.constant(1), polynomials.constant(1))
        for _ in range(exponent):
            result = polynomials.multiply(result[0], base[0]), polynomials.multiply(result[1], base[1])
        return result

    def _primary(self) -> _Ratio:
        token = self._next()
        if token[:1].isdecimal():
            number = Fraction(token)
            return polynomials.constant(number.numerator), polynomials.constant(number.denominator)
        if token == "(":
            inside = self.sum()
            self._close()
            return inside
        if not token or not (token[0].isalpha() or token[0] == "_"):
            raise UnreadableError(self._text)
        if not self._take("("):
            return polynomials.name(token), polynomials.constant(1)
        arguments = [self.sum()]
        while self._take(","):
            arguments.append(self.sum())
        self._close()
        if token == "floor" and len(arguments) == 1:
            return self._call("//", list(arguments[0]))
        if token == "ceiling" and len(arguments) == 1:
            top, bottom = arguments[0]
            less = polynomials.subtract(bottom, polynomials.constant(1))
            return self._call("//", [polynomials.add(top, less), bottom])
        return self._call(token, [_whole(argument) for argument in arguments])

    def _close(self) -> None:
        if not self._take(")"):
            raise UnreadableError(self._text)

    def _call(self, name: str, arguments: Sequence[Poly]) -> _Ratio:
        make = self._calls.get(name)
        if make is None:
            raise UnreadableError(self._text)
        return make(arguments), polynomials.constant(1)


def _whole(ratio: _Ratio) -> Poly:
    """Returns the polynomial that equals the ratio.

    Raises:
        UnreadableError: the ratio is not a polynomial.
    """
    found = polynomials.exact_quotient(*ratio)
    if found is None:
        raise UnreadableError(f"{polynomials.text(ratio[0])} / {polynomials.text(ratio[1])}")
    return found
