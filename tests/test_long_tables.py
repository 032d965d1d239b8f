"""A terminal shows a table of one screen; `-v` shows all of it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from onnxsmith.base.report.base import Table
from onnxsmith.cli.render.terminal import _table


def shown(table: Table, *, whole: bool) -> str:
    out = io.StringIO()
    Console(file=out, width=80).print(_table(table, None if whole else 24))
    return out.getvalue()


ROWS = tuple((f"row {index}",) for index in range(100))


def test_a_long_table_is_cut_and_says_so() -> None:
    text = shown(Table(("name",), ROWS), whole=False)
    assert len(text.splitlines()) <= 26
    assert "76 more rows: -v, --html, --json" in text
    assert "row 23" in text
    assert "row 24" not in text


def test_the_worst_rows_stay() -> None:
    text = shown(Table(("name",), ROWS, worst_first=(99, 50)), whole=False)
    assert "row 99" in text
    assert "row 50" in text
    assert text.index("row 50") < text.index("row 99")


@pytest.mark.parametrize("table", [Table(("name",), ROWS), Table(("name",), ROWS, rows_in_terminal=(1, 2))])
def test_verbose_shows_every_row(table: Table) -> None:
    assert all(f"row {index} " in shown(table, whole=True) + " " for index in (0, 24, 99))


def test_long_texts_are_cut_behind_a_word() -> None:
    table = Table(("what",), (("one two three four",), ("x" * 30,), ("short",)), longest=12)
    assert [line.strip() for line in shown(table, whole=False).splitlines()] == [
        "what",
        "one two …",
        "xxxxxxxxxxx…",
        "short",
    ]
    assert "one two three four" in shown(table, whole=True)


def test_a_short_table_is_whole() -> None:
    assert "more rows" not in shown(Table(("name",), ROWS[:24]), whole=False)


SENTENCE = "a sentence that needs more room than all other columns of this table have together"


def test_a_word_of_a_heading_is_not_folded_while_other_columns_can_be_narrower() -> None:
    head = ("coreml-neuralnetwork: node", "operator", "result", "why", "evidence")
    rows = (("node_conv_transpose_3", "ConvTranspose", "refused", SENTENCE, "by the table of it"),)
    lines = shown(Table(head, rows), whole=True).splitlines()
    assert lines[0].startswith("coreml-neuralnetwork: ")
    assert max(map(len, lines)) <= 80


def test_words_of_headings_are_folded_where_the_other_columns_would_be_too_narrow() -> None:
    lines = shown(Table(("w" * 75, "why", "who"), (("x", SENTENCE, SENTENCE),)), whole=True).splitlines()
    assert lines[0].startswith("w" * 20)
    assert max(map(len, lines)) <= 80
