"""Prints a report in a terminal."""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as RichTable

from onnxsmith.base.printable import LINE, VERBATIM, below, limited, one_line, paragraph, printable
from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Block, Chart, Facts, Intervals, Part, Plot, Report, Table, Text, Tone
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import shortened
from onnxsmith.cli import printed_streams
from onnxsmith.cli.render.whole_headings import WholeHeadings

_STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.WARN: "yellow", Tone.BAD: "bold red"}
_VERDICTS = {
    Verdict.DONE: "green",
    Verdict.DIFFERENT: "bold red",
    Verdict.CANNOT_TELL: "bold yellow",
    Verdict.FAILED: "bold red",
}


class _Console(Console):
    """A console that shows every character of a text: of the control characters, only its own styles and movements
    reach the terminal. It raises BrokenPipeError; rich's own exits with status 1."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yields the pieces to write. Every text that is printed passes here, also what other code prints beside a
        progress bar."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else Segment(printable(piece.text), piece.style)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(width: int | None = None, *, stderr: bool = False) -> Console:
    """Makes a console on standard output, or on standard error. It prints words such as `:x:` as they are, where rich
    would print a picture."""
    stream = printed_streams.behind(sys.stderr if stderr else sys.stdout)
    return _Console(width=width, stderr=stderr, file=stream, emoji=False)


def _literal(text: str) -> str:
    """Returns the markup that shows a text as it is, but for its length. Escapes of hidden characters stand in it
    before rich measures it for a table."""
    return escape(paragraph(text))


def plain(report: Report, width: int) -> str:
    """Returns the report as a terminal of this width shows it, without colours and spaces at the ends of lines."""
    file = io.StringIO()
    printed = _Console(width=width, file=file, force_terminal=False, color_system=None, emoji=False)
    show(report, printed)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()).strip()


_ROWS = (24, 16, 12, 8, 6, 4, 3, 2, 1)
"""Limits the rows of a table, and the sentences of a part: the first of these with which the report is short enough. A
choice: 24 are the lines of a terminal by default."""
_LINES = 60
"""Limits the lines of a report in a pipe or a file. A choice: a large terminal shows them at once."""
_LEAST_SCREEN, _MOST_SCREEN = 24, 40
"""Limit the lines of a report in a terminal, whatever its height. A choice: a usual terminal, and one look."""


_ANYWAY = 4
"""The rows if no number of them makes the report short enough, such as beside a long page. A choice."""
_PAGES = 8
"""Limits the verbatim texts of a part, such as the code of findings, where its sentences are limited further. A
choice."""
_TELLING = 2
"""Counts the spaces of a clause that stands in a verdict by no chance; `2 nodes` may. A choice."""
_SENTENCES = 8
"""Limits the sentences that need attention. A choice: with them a report still fits a screen."""


_Parts = Sequence[tuple[Part, Sequence[Block]]]
"""Holds each part of a report with its blocks."""


def show(report: Report, console: Console, *, whole: bool = False, brief: bool = False) -> None:
    """Prints the report. Long tables show their first rows, and say how many are left out; together the report has at
    most 60 lines where that is possible. `whole` prints all blocks of all parts. `brief` is for a reader before a
    screen: it prints the verdict, what needs attention, and a line for each part that is not the point of the report.
    """
    parts = [(part, list(part.blocks())) for part in report.parts]
    if whole:
        _print_in_full(report, parts, console, None)
    elif brief:
        screen = min(max(console.height - 1, _LEAST_SCREEN), _MOST_SCREEN)
        most = _fitting(console, screen, partial(_print_briefly, report, parts, console, verdict_first=True))
        _print_briefly(report, parts, console, most or _ANYWAY, verdict_first=most is not None)
    else:
        most = _fitting(console, _LINES, partial(_print_in_full, report, parts, console))
        _print_in_full(report, parts, console, most or _ANYWAY)


def _fitting(console: Console, lines: int, write: Callable[[int], None]) -> int | None:
    """Returns the most rows of a table with which the report has at most so many lines; None if none is enough."""
    for rows in _ROWS:
        with console.capture() as printed:
            write(rows)
        if printed.get().count("\n") <= lines:
            return rows
    return None


def _print_in_full(report: Report, parts: _Parts, console: Console, most: int | None) -> None:
    """Prints the blocks of all parts, then notes, problems and the verdict, which then stands above the prompt."""
    _print_parts(parts, console, most)
    _print_notes(report.notes[:most], console, len(report.notes))
    _print_problems(report, console, most)
    _print_headline(report, console)


def _print_briefly(report: Report, parts: _Parts, console: Console, most: int, *, verdict_first: bool) -> None:
    """Prints the verdict, what needs attention, the parts that are the point of the report, and the lines of the
    others. The verdict of a report that is longer than the screen stands last, above the prompt."""
    summarised = [(part, blocks) for part, blocks in parts if blocks and _is_summarised(part)]
    if verdict_first:
        _print_headline(report, console)
    _print_grid(
        [row for part, _ in summarised for row in part.card()], console, report.headline if verdict_first else ""
    )
    _print_attention(report, [block for _, blocks in summarised for block in blocks], console, most)
    listed = [(part, [block for block in blocks if not _is_told(block, report)])
              for part, blocks in parts if not _is_summarised(part)]  # fmt: skip
    _print_parts(listed, console, most)
    _print_grid([(part.title, part.line()) for part, _ in summarised if part.line()], console)
    if summarised:
        console.print("  [dim]all of it: -v, --html, --json[/]")
    if not verdict_first:
        _print_headline(report, console)


def _print_attention(report: Report, blocks: Sequence[Block], console: Console, most: int) -> None:
    """Prints what needs attention, the worst first: problems, sentences on something bad, notes, warnings."""
    texts = [block for block in blocks if isinstance(block, Text) and not _is_told(block, report)]
    bad = [text for text in texts if text.tone is Tone.BAD]
    notes = [*report.notes, *(text.text for text in texts if text.tone is Tone.WARN)]
    _print_problems(report, console, most)
    limit = min(most, _SENTENCES)
    for text in bad[:limit]:
        console.print(f"[{_STYLES[text.tone]}]{_literal(text.text)}[/]", soft_wrap=True)
    if len(bad) > limit:
        console.print(_more(len(bad) - limit, "sentence"))
    _print_notes(notes[:limit], console, len(notes))
    if report.problems or bad or notes:
        console.print()


def _print_notes(notes: Sequence[str], console: Console, count: int) -> None:
    """Prints notes, and says how many of the `count` notes are left out."""
    for note in notes:
        console.print(f"[yellow]note:[/yellow] {_literal(below(note))}", soft_wrap=True)
    if count > len(notes):
        console.print(_more(count - len(notes), "note"))


def _print_problems(report: Report, console: Console, most: int | None) -> None:
    for found in report.problems[:most]:
        show_problem(found, console)
    if most is not None and len(report.problems) > most:
        console.print(_more(len(report.problems) - most, "problem"))


def _is_told(block: Block, report: Report) -> bool:
    """Whether the block is a sentence that the verdict or a problem has, behind the name with which it begins."""
    if not isinstance(block, Text):
        return False
    told = [report.headline, *(line for found in report.problems for line in (found.what, found.why))]
    behind = block.text.partition(": ")[2]
    sayings = [block.text, *([behind] if behind.count(" ") >= _TELLING else [])]
    return any(said in line for line in told for said in sayings)


def _is_summarised(part: Part) -> bool:
    return bool(part.line() or part.card())


def _print_headline(report: Report, console: Console) -> None:
    if report.headline:
        console.print(f"[{_VERDICTS[report.verdict]}]{_literal(one_line(report.headline))}[/]", soft_wrap=True)


def _print_grid(rows: Sequence[tuple[str, str]], console: Console, above: str = "") -> None:
    """Prints labelled values, and a blank line after them and the line above."""
    if rows:
        console.print(Padding(_grid(rows), (0, 0, 0, 2), expand=False))
    if rows or above:
        console.print()


def _print_parts(parts: _Parts, console: Console, most: int | None) -> None:
    """Prints the blocks of parts, with at most `most` rows in a table; None for all."""
    for part, blocks in parts:
        if not blocks:
            continue
        console.print(f"[bold]{_literal(part.title)}[/bold]")
        left_out = [] if most is None else _left_out([block for block in blocks if isinstance(block, Text)], most)
        tables = [] if most is None else _tables_left_out(blocks, most)
        for block in blocks:
            if isinstance(block, Chart | Plot | Intervals) or any(block is one for one in (*left_out, *tables)):
                continue
            if isinstance(block, Text) and block.shorter and most is not None:
                console.print(Padding(_literal(block.shorter), (0, 0, 0, 2), expand=False))
                console.print("  [dim]the whole text: -v, --html, --json[/]")
            elif isinstance(block, Text) and block.verbatim:
                console.print(escape(limited(block.text, VERBATIM)), soft_wrap=True, highlight=False)
            else:
                console.print(Padding(_renderable(block, most), (0, 0, 0, 2), expand=False))
        if tables:
            console.print(f"  {_more(len(tables), 'table')}")
        if left_out:
            console.print(f"  {_more(len(left_out), 'sentence')}")
        console.print()


def _left_out(texts: Sequence[Text], most: int) -> list[Text]:
    """Returns the texts of a part beyond the first ones. Those on something bad come first."""
    sentences = sorted((text for text in texts if not text.verbatim), key=lambda text: text.tone is not Tone.BAD)
    return [*sentences[most:], *[text for text in texts if text.verbatim][max(most, _PAGES) :]]


def _tables_left_out(blocks: Sequence[Block], most: int) -> list[Table]:
    """Returns the tables of a part beyond the first ones, if it has a key table."""
    tables = [block for block in blocks if isinstance(block, Table)]
    if not any(table.is_key for table in tables):
        return []
    return [table for table in tables if not table.is_key][most:]


def _more(count: int, noun: str) -> str:
    return f"[dim]{count:,} more {noun if count == 1 else noun + 's'}: -v, --html, --json[/]"


def show_problem(found: Problem, console: Console) -> None:
    """Prints a problem. Lines are not wrapped, so that commands in them can be pasted."""
    console.print(f"[bold red]{_literal(found.id)}[/]: {_literal(one_line(found.what))}", soft_wrap=True)
    for label, text in found.details():
        shown = escape(limited(text, LINE)) if label.startswith("fix") else _literal(text)  # a fix may be a program
        console.print(f"  [dim]{label}:[/] {shown}", soft_wrap=True)


def _renderable(block: Facts | Table | Text, most: int | None) -> RenderableType:
    if isinstance(block, Text):
        style = _STYLES[block.tone]
        return f"[{style}]{_literal(block.text)}[/]" if style else _literal(block.text)
    if isinstance(block, Facts):
        shown = block.rows if most is None or len(block.rows) <= _ROWS[0] else block.rows[:most]
        grid = _grid(shown)
        return grid if len(shown) == len(block.rows) else Group(grid, _more(len(block.rows) - len(shown), "row"))
    return _table(block, most)


def _grid(rows: Sequence[tuple[str, str]]) -> RichTable:
    """Makes a table of labels and values without headings."""
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in rows:
        grid.add_row(_literal(one_line(label)), _literal(one_line(value)))
    return grid


def _table(block: Table, most: int | None) -> RenderableType:
    table = WholeHeadings(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for index, head in enumerate(block.head):
        table.add_column(_literal(one_line(head)), justify="right" if index in block.right else "left", overflow="fold")
    is_whole = most is None or block.rows_in_terminal is None
    order: Sequence[int] = range(len(block.rows)) if is_whole else block.rows_in_terminal or ()
    if most is not None and len(order) > most and not block.is_key:
        order = sorted(list(dict.fromkeys((*block.worst_first, *order)))[:most]) if block.worst_first else order[:most]
    rows = [block.rows[index] for index in order]
    for row in rows:
        table.add_row(*(_literal(_cut(one_line(cell), 0 if most is None else block.longest)) for cell in row))
    if len(rows) == len(block.rows):
        return table
    return Group(table, _more(len(block.rows) - len(rows), "row"))


def _cut(text: str, longest: int) -> str:
    """Cuts a text behind a word, and ends it with `…`. Only within the first word it is cut anywhere."""
    if not longest or len(text) <= longest:
        return text
    words = textwrap.shorten(text, longest, placeholder=" …")
    return words if words != "…" else shortened(text, longest)
