"""Reads from a runtime's refusal which sizes or indices it would accept.

No runtime has a stable form of messages, but nearly all messages name the numbers: 'expected 3 got 5', 'idx=7 must be
within [-4,3]', '{2,64} to {7,11,13}'. So if a message names a current size, each other number in the message is
proposed in place of this size.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping

_NOISE = re.compile(
    r"\[ONNXRuntimeError\] : \d+ : \w+ :|"
    r"\S+\.(?:cc|cpp|h|hpp|py|cu)(?::\d+)?\b|0x[0-9a-fA-F]+|[Nn]ame:\s?'[^']*'|line \d+"
)
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,7}(?![\w.]*\w)")
_LIST = re.compile(r"[\[({]\s*(-?\d+(?:\s*[,x]\s*-?\d+)*)\s*,?\s*[\])}]")
_INDEX = re.compile(
    r"ind(?:ex|ices|ice)\b|idx|out of (?:range|bounds)|batch_ind|sequence_len|must be (?:with)?in", re.I
)
_RANGE = re.compile(r"\[\s*(-?\d+)\s*,\s*(-?\d+)\s*([\])])")
_TIMES = re.compile(r"(?<=\d)x(?=\d)")
_MOST = 1 << 16
"""Limits the numbers in a message that are proposed as a size. A choice: larger numbers are addresses or byte
counts."""


def is_of_index(text: str) -> bool:
    """Whether the message refuses the value of an index or a length."""
    return _INDEX.search(_plain(text)) is not None


def index_limit(text: str) -> int | None:
    """Returns the largest index that the message allows: the end of a range that includes 0."""
    ranges = [(int(low), int(high) - (end == ")")) for low, high, end in _RANGE.findall(_plain(text))]
    return min((high for low, high in ranges if low <= 0 <= high), default=None)


def sizes(text: str, now: Mapping[str, int], known: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Yields other sizes in place of `now`. The likeliest sizes come first; sizes in `known` stay."""
    plain = _plain(text)
    named = list(dict.fromkeys(int(number) for number in _NUMBER.findall(plain) if 0 < int(number) <= _MOST))
    free = [symbol for symbol in now if symbol not in known]
    yield from _to_fit_products(plain, now, free)
    for size, other in itertools.permutations(named, 2):
        alike = [symbol for symbol in free if now[symbol] == size]
        for symbol in alike:
            yield {**now, symbol: other}
        if len(alike) > 1:
            yield {**now, **dict.fromkeys(alike, other)}
    for number, symbol in itertools.product(named, free):
        if now[symbol] != number:
            yield {**now, symbol: number}


def _to_fit_products(plain: str, now: Mapping[str, int], free: list[str]) -> Iterator[dict[str, int]]:
    """Yields sizes with which two shapes in the message have equally many elements. A shape is a list or a count."""
    lists = [[int(part) for part in re.split(r"[,x]", found)] for found in _LIST.findall(plain)]
    counts = re.findall(r"size (\d+)", plain)
    lists += [[int(count)] for count in counts]
    for have, want in itertools.permutations([one for one in lists if one and 0 not in one], 2):
        held, asked = abs(math.prod(have)), abs(math.prod(want))
        for symbol in free:
            if held % now[symbol]:
                continue
            others = held // now[symbol]
            if -1 not in want and asked % others == 0:
                yield {**now, symbol: asked // others}
            elif -1 not in want:
                ones = [other for other in free if other != symbol and now[other] in have]
                rest = others // math.prod(now[other] for other in ones)
                if rest and asked % rest == 0:
                    yield {**now, **dict.fromkeys(ones, 1), symbol: asked // rest}
            elif held % asked:
                yield {**now, symbol: now[symbol] * asked // math.gcd(held, asked)}


def _plain(text: str) -> str:
    """Returns the message without error codes, source locations and names."""
    return _TIMES.sub(", ", _NOISE.sub(" ", text))
