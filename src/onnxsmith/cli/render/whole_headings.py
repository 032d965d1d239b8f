"""A table in a terminal whose headings are not folded within a word."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table

_LEAST_COLUMN = 4
"""The least width of a column beside headings that are kept whole. A choice: nothing is readable in narrower
columns."""


class WholeHeadings(Table):
    """A table that folds no word of a heading if the other columns can be narrower. rich folds the widest columns
    first, whatever stands in their headings."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        measured = partial(Measurement.get, console, options)
        natural = [max(measured(text).maximum for text in (one.header, *one.cells)) for one in self.columns]
        words = [measured(one.header).minimum for one in self.columns]
        for at in _kept_whole(natural, words, options.max_width - sum(self.padding[1::2]) * len(natural)):
            self.columns[at].width = words[at]
        yield from super().__rich_console__(console, options)


def _kept_whole(natural: Sequence[int], words: Sequence[int], space: int) -> set[int]:
    """Returns the columns that need a fixed width, that of the longest word in their heading. `natural` are the widths
    without a fold. Returns none if the other columns would be too narrow."""
    kept: set[int] = set()
    while True:
        others = [width for at, width in enumerate(natural) if at not in kept]
        level = _level(others, space - sum(words[at] for at in kept))
        cut = {at for at in range(len(natural)) if at not in kept and min(natural[at], level) < words[at]}
        if not cut or level < _LEAST_COLUMN:
            return set() if cut else kept
        kept |= cut


def _level(widths: Sequence[int], space: int) -> int:
    """Returns the largest width to which the widest columns are cut so that all together fit into the space."""
    return next(
        (level for level in range(max(widths, default=0), 0, -1) if sum(min(level, one) for one in widths) <= space), 0
    )
