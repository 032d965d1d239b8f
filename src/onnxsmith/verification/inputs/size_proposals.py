"""Proposes sizes for symbolic dimensions.

A file does not say that a height must be a multiple of 32, or that two unnamed dimensions have to agree. So sizes are
proposals, which the reference of a comparison accepts or refuses. The first proposals are usual sizes: a small batch,
and different sizes for different dimensions, so that swapped dimensions show. Then come round sizes and equal sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from onnxsmith.graph.shapes import dims
from onnxsmith.graph.structure.signature import Port, Signature, is_symbol

if TYPE_CHECKING:
    from onnxsmith.verification.inputs.generate import Generator
    from onnxsmith.verification.inputs.size_limits import SizeLimits

Sizes = dict[str, int]

# A choice, the likeliest first: multiples of 32 and powers of two, the sizes of images and of layers.
_LADDER = (64, 32, 96, 128, 16, 224, 256, 512, 48, 640, 320, 1024, 8, 576, 4, 2, 1)
_BATCHES = (2, 1)
"""Lists the batch sizes of a first proposal, in the order of trial. A choice: 2 comes first, because a batch of 1 hides
errors of broadcasting."""
_OTHER_BATCHES = (1, 3, 7, 2, 4, 8)
_MOST_BASES = 160
"""Limits the proposals. A choice: each proposal is a run of the reference."""


def bases(signature: Signature, known: Mapping[str, int], limits: SizeLimits | None = None) -> Iterator[Sizes]:
    """Yields proposals with a size for every symbol. The likeliest proposal comes first; sizes in `known` stay, and
    all sizes are within the limits."""
    symbols = [symbol for symbol in dims.symbols(signature) if symbol not in known]
    if not symbols:
        yield dict(known)
        return
    found: Iterator[Sizes] = _proposals(symbols, batches(signature), known, limits)
    if limits:
        fitted = (limits.fitted(one) for one in found)
        found = (one for one in fitted if one is not None)
    yield from itertools.islice(_unique(found), _MOST_BASES)


def others(symbol: str, base: Mapping[str, int], signature: Signature) -> Iterator[int]:
    """Yields other sizes for one symbol, while the other symbols stay as in `base`."""
    now = base[symbol]
    if symbol in batches(signature):
        ladder: tuple[int, ...] = _OTHER_BATCHES
    else:
        step = next((step for step in (64, 32, 16, 8, 4, 2) if now % step == 0 and now > step), 1)
        ladder = (now + 1, now * 2, now - 1, now + step, now - step, now // 2, 1, *_LADDER)
    yield from (size for size in dict.fromkeys(ladder) if size > 0 and size != now)


def numbers(generator: Generator) -> dict[str, frozenset[int]]:
    """Returns the numbers in the graph that may limit each symbol. Symbols that are not called a batch also get the
    numbers without a known axis."""
    signature, held = generator.signature, generator.numbers
    inner = {port.name: port for port in generator.inner}
    found: dict[str, frozenset[int]] = {}
    for symbol in dims.symbols(signature):
        called = {symbol}
        for port in signature.required():
            theirs = inner.get(port.name)
            for dim, own in zip(port.shape or (), (theirs.shape if theirs is not None else ()) or (), strict=False):
                if isinstance(dim, str) and isinstance(own, str) and symbol in (dim, *dims.names_in(dim)):
                    called |= {own, *dims.names_in(own)}
        found[symbol] = held.of(called) | (frozenset() if "batch" in symbol.lower() else held.of_any)
    return found


def past(number: int, now: int) -> int:
    """Returns the first odd size above a number, other than `now`."""
    size = number + 1 if number % 2 == 0 else number + 2
    return size if size != now else size + 2


def rounds(base: Mapping[str, int], beyond: Mapping[str, int]) -> list[Sizes]:
    """Returns sizes for all symbols of `beyond` at once, in three rounds. Over the rounds, each symbol takes 1, twice
    the base's size, and the size in `beyond`. In each round, neighbouring symbols take different levels of these
    three."""
    found = []
    for number in range(3):
        sizes = dict(base)
        for place, symbol in enumerate(beyond):
            levels = (beyond[symbol], 1, 2 * base[symbol])
            sizes[symbol] = levels[(place + number) % 3]
        found.append(sizes)
    return list(_unique(iter(found))) if beyond else []


def batches(signature: Signature) -> set[str]:
    """Returns the symbols that are a batch by name, or that are the first axis of an input with two or more
    dimensions."""
    found: set[str] = set()
    for port in signature.required():
        for axis, dim in enumerate(port.shape or ()):
            if isinstance(dim, str) and ((axis == 0 and _ranked(port)) or "batch" in dim.lower()):
                found.add(dim)
    return found


def _ranked(port: Port) -> bool:
    return port.shape is not None and len(port.shape) >= 2


def _proposals(
    symbols: list[str], batch_like: set[str], known: Mapping[str, int], limits: SizeLimits | None
) -> Iterator[Sizes]:
    free = [symbol for symbol in symbols if symbol not in batch_like]
    batches = [symbol for symbol in symbols if symbol in batch_like]
    ladders = {symbol: limits.ladder(symbol, _LADDER) if limits else _LADDER for symbol in free}
    rows = {symbol: limits.ladder(symbol, _BATCHES) if limits else _BATCHES for symbol in batches}
    ties = sorted(itertools.product((False, True), repeat=min(len(free), 4)), key=sum)

    def at(symbol: str, index: int) -> int:
        return ladders[symbol][index % len(ladders[symbol])]

    for number, batch in enumerate(_BATCHES):
        fixed = {**known, **{symbol: held[number % len(held)] for symbol, held in rows.items()}}
        for tie in ties:
            tied = {symbol for symbol, is_tied in zip(free, tie, strict=False) if is_tied}
            loose = [symbol for symbol in free if symbol not in tied]
            for index in range(max(map(len, ladders.values()), default=len(_LADDER))):
                if len(loose) > 1:
                    spread = {symbol: at(symbol, index + step) for step, symbol in enumerate(loose)}
                    yield {**fixed, **dict.fromkeys(tied, batch), **spread}
                yield {**fixed, **dict.fromkeys(tied, batch), **{symbol: at(symbol, index) for symbol in loose}}


def _unique(proposals: Iterator[Sizes]) -> Iterator[Sizes]:
    seen: set[tuple[tuple[str, int], ...]] = set()
    for proposal in proposals:
        key = tuple(sorted(proposal.items()))
        if key not in seen:
            seen.add(key)
            yield proposal


def of_feed(signature: Signature, values: Mapping[str, Any]) -> Sizes:
    """Returns the size of each symbol of the inputs in the given arrays. A symbol that occurs only in expressions gets
    the size for which the expression has the array's size."""
    given = [
        (dim, size)
        for port in signature.inputs
        if isinstance(values.get(port.name), np.ndarray)
        for dim, size in zip(port.shape or (), values[port.name].shape, strict=False)
        if isinstance(dim, str)
    ]
    found = {dim: size for dim, size in given if is_symbol(dim)}
    for dim, size in given:
        unknown = [name for name in dims.names_in(dim) if name not in found]
        solved = _solved(dim, unknown[0], size, found) if len(unknown) == 1 and dim not in found else None
        if solved is not None:
            found[unknown[0]] = solved
    return found


def _solved(dim: str, name: str, size: int, known: Sizes) -> int | None:
    """Solves an expression that is linear in the symbol: 4 for `2*h` of size 8."""
    low, high = (dims.evaluate(dim, {**known, name: at}) for at in _APART)
    if low is None or high is None or low == high:
        return None
    at = _APART[0] + (size - low) * (_APART[1] - _APART[0]) // (high - low)
    return at if at >= 0 and dims.evaluate(dim, {**known, name: at}) == size else None


_APART = (720720, 2 * 720720)
"""Lists two sizes that all small numbers divide, so that quotients are exact, and that are large enough for
subtractions."""
