"""Writes a card as HTML for the output of a notebook cell: no script, a style of its own, and a limited size."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Chart, Facts, Intervals, Plot, Table, Text, Tone
from onnxsmith.base.report.card import Card
from onnxsmith.base.words import shortened, size
from onnxsmith.cli.render.opened_parts import opened
from onnxsmith.cli.render.templates import block_kind, filled, laid_out, source

LARGEST = 200_000
"""Limits the bytes of a card without the page of `view`. A choice: each run of a cell writes them into the file of the
notebook."""
LARGEST_PAGE = 2_500_000
"""Limits the bytes of the page of `view`. Jupyter refuses outputs of more than 3 MB in 3 seconds (jupyter_server,
`iopub_data_rate_limit` and `rate_limit_window`); the rest is for the card and for characters that JSON escapes."""
_LIMITS = ((100, 4000, True), (40, 1000, True), (12, 500, False), (4, 200, False), (1, 100, False))
"""Limits the rows of a table, and the characters of a text, and says whether curves are drawn: the first of these with
which the card is small enough. A choice."""
_PARTS = 20
"""Limits the parts if the smallest of them are still too many. A choice."""
_SCOPE = ".onnxsmith-card.onnxsmith-card.onnxsmith-card"
"""Selects a card. The class stands there three times: so each rule is stronger than those of a notebook, such as
`.jp-RenderedHTMLCommon tbody tr:nth-child(odd)`."""
_MARK = "a figure of a card"


def to_html(card: Card) -> str:
    """Writes the card with as many rows as its size allows, and the page of `view` in a frame if a notebook takes it.
    All text is escaped, because names in a model come from strangers."""
    least = _Limited(*_LIMITS[-1])
    ways = [(_Limited(*limits), card.parts) for limits in _LIMITS] + [(least, card.parts[:_PARTS]), (least, ())]
    written = (_filled(card, limited, parts) for limited, parts in ways)
    return next(one for one in written if len(one.encode()) <= LARGEST) + _frame(card.page)


def _filled(card: Card, limited: _Limited, parts: Sequence[tuple[str, tuple[Block, ...]]]) -> str:
    own = [(title, blocks) for title, blocks in parts if blocks]
    first = {id(blocks) for _, blocks in opened(own, has_problems=bool(card.problems))}
    return filled(
        "notebook.html.jinja",
        card=card,
        title=limited.text(card.title),
        headline=limited.text(card.headline),
        style=_style(),
        problems=[limited.problem(one) for one in card.problems[: limited.rows]],
        notes=[limited.text(one) for one in card.notes[: limited.rows]],
        left_out=[
            _more(len(whole) - limited.rows, noun)
            for whole, noun in ((card.problems, "problem"), (card.notes, "note"))
            if len(whole) > limited.rows
        ],
        facts=[(label, limited.text(value)) for label, value in card.facts],
        parts=[(limited.text(title), id(blocks) in first, limited.blocks(blocks)) for title, blocks in own],
        parts_left_out=_more(len(card.parts) - len(parts), "part") if len(parts) < len(card.parts) else "",
    )


def _style() -> str:
    """Returns the colours of the pages and the style of cards, for cards alone."""
    shared = files("onnxsmith.viewer.page").joinpath("shared.css").read_text(encoding="utf-8")
    return (shared + source("notebook.css")).replace(":root", _SCOPE)


@dataclass(frozen=True)
class _Shown:
    """A block with at most so many rows. `rest` counts those that are left out."""

    kind: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    right: Sequence[int] = ()
    text: str = ""
    tone: str = ""
    address: str = ""
    rest: str = ""


@dataclass(frozen=True)
class _Limited:
    """Shortens blocks to `rows` rows or sentences, and texts to `longest` characters."""

    rows: int
    longest: int
    draws: bool

    def text(self, text: str) -> str:
        return shortened(text, self.longest)

    def problem(self, problem: Problem) -> tuple[str, str, list[tuple[str, str]]]:
        details = [(label, self.text(text.strip("\n"))) for label, text in problem.details()]
        return problem.id, self.text(problem.what), details

    def blocks(self, blocks: Sequence[Block]) -> list[_Shown]:
        texts = [one for one in blocks if isinstance(one, Text)]
        kept = {id(one) for one in sorted(texts, key=lambda one: one.tone is not Tone.BAD)[: self.rows]}
        shown = [self._block(one) for one in blocks if not isinstance(one, Text) or id(one) in kept]
        rest = len(texts) - len(kept)
        return [*shown, _Shown("rest", rest=_more(rest, "sentence"))] if rest else shown

    def _block(self, block: Block) -> _Shown:
        if isinstance(block, Facts):
            return _Shown("facts", rows=self._cut(block.rows), rest=self._rest(block.rows))
        if isinstance(block, Table):
            rows = [block.rows[at] for at in block.worst_first or range(len(block.rows))]
            head = [self.text(one) for one in block.head]
            return _Shown("table", head, self._cut(rows), block.right, rest=self._rest(rows))
        if isinstance(block, Text):
            return _Shown("verbatim" if block.verbatim else "text", text=self.text(block.text), tone=block.tone.value)
        return self._picture(block)

    def _picture(self, block: Chart | Plot | Intervals) -> _Shown:
        """Returns the curves as a picture. An `<svg>` element would leave its texts where a viewer removes it, and the
        rules of the notebook would change it."""
        if not self.draws:
            return _Shown("rest", rest=f"The picture {block.title!r} is too large for a notebook.")
        svg = filled("picture.svg.jinja", kind=block_kind(block), block=laid_out(block), mark=_MARK)
        address = f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"
        return _Shown("picture", text=block.title, address=address)

    def _cut(self, rows: Sequence[Sequence[str]]) -> list[list[str]]:
        return [[self.text(cell) for cell in row] for row in rows[: self.rows]]

    def _rest(self, rows: Sequence[object]) -> str:
        return _more(len(rows) - self.rows, "row") if len(rows) > self.rows else ""


def _more(count: int, noun: str) -> str:
    return f"{count:,} more {noun if count == 1 else noun + 's'}."


def _frame(page: str) -> str:
    """Returns the page in a frame as high as most of a screen, or a sentence if the page is too large. The sandbox of
    the frame keeps the page from reaching anything in the notebook."""
    if not page:
        return ""
    count = len(page.encode())
    return filled("notebook_frame.html.jinja", page=page, size=size(count), fits=count <= LARGEST_PAGE)
