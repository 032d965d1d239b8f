"""Prints a report in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable

from onnxsmith.base.problem import Problem
from onnxsmith.base.report.base import Chart, Facts, Intervals, Plot, Report, Table, Text, Tone
from onnxsmith.base.report.verdict import Verdict

_STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.WARN: "yellow", Tone.BAD: "bold red"}
_VERDICTS = {
    Verdict.DONE: "green",
    Verdict.DIFFERENT: "bold red",
    Verdict.CANNOT_TELL: "bold yellow",
    Verdict.FAILED: "bold red",
}


class _Console(Console):
    """A console that raises BrokenPipeError; rich's own exits with status 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console(width: int | None = None) -> Console:
    """Makes a console on standard output."""
    return _Console(width=width)


_ROWS = 24
"""Limits the rows of a table, so that it fits on a screen. A choice: the lines of a terminal by default."""


def show(report: Report, console: Console, *, whole: bool = False) -> None:
    """Prints the report. Without `whole`, a table of more rows than a screen has shows the first, and says how many are
    left out."""
    for part in report.parts:
        blocks = list(part.blocks())
        if not blocks:
            continue
        console.print(f"[bold]{escape(part.title)}[/bold]")
        for block in blocks:
            if isinstance(block, Text) and block.verbatim:
                console.print(escape(block.text), soft_wrap=True, highlight=False)
                continue
            if isinstance(block, Chart | Plot | Intervals):
                continue
            console.print(Padding(_renderable(block, whole=whole), (0, 0, 0, 2), expand=False))
        console.print()
    for note in report.notes:
        console.print(f"[yellow]note:[/yellow] {escape(note)}", soft_wrap=True)
    for found in report.problems:
        show_problem(found, console)
    if report.headline:
        console.print(f"[{_VERDICTS[report.verdict]}]{escape(report.headline)}[/]", soft_wrap=True)


def show_problem(found: Problem, console: Console) -> None:
    """Prints a problem. Lines are not wrapped, so that commands in them can be pasted."""
    console.print(f"[bold red]{escape(found.id)}[/]: {escape(found.what)}", soft_wrap=True)
    for label, text in found.details():
        console.print(f"  [dim]{label}:[/] {escape(text)}", soft_wrap=True)


def _renderable(block: Facts | Table | Text, *, whole: bool) -> RenderableType:
    if isinstance(block, Text):
        style = _STYLES[block.tone]
        return f"[{style}]{escape(block.text)}[/]" if style else escape(block.text)
    if isinstance(block, Facts):
        grid = RichTable.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for label, value in block.rows:
            grid.add_row(escape(label), escape(value))
        return grid
    return _table(block, whole=whole)


def _table(block: Table, *, whole: bool) -> RenderableType:
    table = RichTable(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for index, head in enumerate(block.head):
        table.add_column(escape(head), justify="right" if index in block.right else "left", overflow="fold")
    order: Sequence[int] = range(len(block.rows)) if whole or block.rows_in_terminal is None else block.rows_in_terminal
    if not whole and len(order) > _ROWS:
        order = (
            sorted(list(dict.fromkeys((*block.worst_first, *order)))[:_ROWS]) if block.worst_first else order[:_ROWS]
        )
    rows = [block.rows[index] for index in order]
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    if len(rows) == len(block.rows):
        return table
    return Group(table, f"[dim]{len(block.rows) - len(rows)} more rows: -v, --html, --json[/]")
