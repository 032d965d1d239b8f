"""Finds blocks of nodes that repeat one after the other, in a graph that names neither modules nor scopes.

The nodes are read as a text in the order of the file, with one letter for each kind of node. A block that repeats is a
piece of the text that follows itself. All such pieces are found in one walk over the text: if a short window of letters
equals the window `period` letters before, again and again, the block repeats with this period.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

_WINDOW = 4
"""Counts the equal letters from which two places are compared. A choice: shorter windows repeat by chance."""
_SHORTEST = 3
"""Counts the fewest nodes of a block that gets a box. A choice."""
_REPEATED = 8
"""Counts the fewest nodes after the first block that have to repeat the block. A choice: unrelated nodes repeat shorter
pieces by chance."""
_LEVELS = 4
"""Limits how often blocks are searched among the blocks found so far. A choice: stages of layers of branches."""


@dataclass(frozen=True)
class Block:
    """Holds consecutive items, nodes or blocks, that are repeat `number` of `of` repeats."""

    items: tuple[Block | int, ...]
    number: int
    of: int


def folded(nodes: Sequence[int], letters: Sequence[Hashable], sources: Sequence[Sequence[int]]) -> list[Block | int]:
    """Returns the nodes with their repeats as blocks, which may hold blocks. `letters` and `sources` are the kind of
    each node and the nodes that it reads from, by node. The nodes stand in an order in which they can run. So
    consecutive nodes never depend on each other in a circle, and a block can be one box."""
    known: dict[Hashable, int] = {}
    items: list[Block | int] = list(nodes)
    text = [known.setdefault(letters[node], len(known)) for node in nodes]
    place = {node: at for at, node in enumerate(nodes)}
    ends = list(range(1, len(nodes) + 1))
    """Lists the position after the last node of each item."""
    crossing = _crossing([[place[one] for one in sources[node] if one in place] for node in nodes])
    for _ in range(_LEVELS):
        found = [
            (start, period, count)
            for start, period, count in _repeats(text, [crossing[end - 1] for end in ends])
            if ends[start + period * count - 1] - ends[start + period - 1] >= _REPEATED
        ]
        if not found:
            break
        items, text, ends = _replaced(items, text, ends, found, known)
    return items


def _crossing(sources: Sequence[Sequence[int]]) -> list[int]:
    """Counts, for each position, the values that are computed before it and read after it."""
    last: dict[int, int] = {}
    for at, read in enumerate(sources):
        for one in read:
            last[one] = at
    changes = [0] * (len(sources) + 1)
    for one, at in last.items():
        changes[one] += 1
        changes[at] -= 1
    total, found = 0, []
    for change in changes[:-1]:
        total += change
        found.append(total)
    return found


def _repeats(text: Sequence[int], cuts: Sequence[int]) -> list[tuple[int, int, int]]:
    """Returns the repeats as start, period and number, from left to right and without overlap."""
    found: list[tuple[int, int, int]] = []
    seen: dict[tuple[int, ...], int] = {}
    start = period = 0
    end = 0
    """Holds the end of the repeat that was chosen last."""
    for at in range(len(text) + 1):
        window = tuple(text[at : at + _WINDOW])
        gap = at - seen[window] if window in seen and len(window) == _WINDOW else 0
        if gap != period:
            if period >= _SHORTEST:
                first, last = max(start - period, end), at - 1 + _WINDOW
                taken = _aligned(first, min(last, len(text)), period, cuts)
                if taken is not None:
                    found.append(taken)
                    end = taken[0] + taken[1] * taken[2]
            start, period = at, gap
        seen[window] = at
    return found


def _aligned(first: int, last: int, period: int, cuts: Sequence[int]) -> tuple[int, int, int] | None:
    """Moves the start of a repeat to the position at which the fewest values cross from one block into the next."""
    if last - first < 2 * period:
        return None
    most = (last - first) // period
    slack = min(last - first - most * period, period - 1)
    if most > 2:  # one block less leaves every alignment open
        slack, most = period - 1, most if slack == period - 1 else most - 1

    def cost(shift: int) -> int:
        return sum(cuts[first + shift + period * block - 1] for block in range(1, most + 1))

    shift = min(range(slack + 1), key=cost)
    return first + shift, period, (last - first - shift) // period


def _replaced(
    items: Sequence[Block | int],
    text: Sequence[int],
    ends: Sequence[int],
    found: Sequence[tuple[int, int, int]],
    known: dict[Hashable, int],
) -> tuple[list[Block | int], list[int], list[int]]:
    """Replaces the repeats by blocks."""
    made: list[Block | int] = []
    letters: list[int] = []
    last: list[int] = []
    at = 0
    for start, period, count in [*found, (len(items), 0, 0)]:
        made += items[at:start]
        letters += text[at:start]
        last += ends[at:start]
        for number in range(count):
            first = start + number * period
            made.append(Block(tuple(items[first : first + period]), number + 1, count))
            letters.append(known.setdefault(("block", tuple(text[first : first + period])), len(known)))
            last.append(ends[first + period - 1])
        at = start + period * count
    return made, letters, last
