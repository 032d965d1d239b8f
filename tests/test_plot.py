"""Plots and intervals: where their points lie."""

from __future__ import annotations

import re

import pytest

from onnxsmith.base.report.base import Intervals, Part, Plot, Report, Series
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.chart import plotted, spanned, ticks
from onnxsmith.cli.render.html_report import to_html
from onnxsmith.cli.render.terminal import console, show


class Drawn(Part):
    title = "Drawn"

    def blocks(self):  # type: ignore[no-untyped-def]
        name = "<b>a</b>"
        yield Plot("t", "x", "y", (Series(name, (1.0, 10.0), (2.0, 4.0), (1.0, 3.0), (3.0, 5.0)),), logarithmic=True)
        yield Intervals("i", ((name, 0.9, 1.1, 1.3),), 1.0)


def test_points_lie_in_order_and_inside() -> None:
    plot = plotted(Plot("t", "x", "y", (Series("a", (1.0, 10.0, 100.0), (1.0, 2.0, 3.0)),), logarithmic=True))
    points = [tuple(map(float, point.split(","))) for point in plot.curves[0].points.split()]
    xs, ys = zip(*points, strict=True)
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    assert list(ys) == sorted(ys, reverse=True)
    assert all(plot.left <= x <= plot.width and 0 <= y <= plot.bottom for x, y in points)


def test_a_plot_of_one_value_is_drawn() -> None:
    assert plotted(Plot("t", "x", "y", (Series("a", (5.0,), (0.0,)),), logarithmic=True)).curves[0].points


def test_an_interval_lies_on_both_sides_of_its_line_if_it_contains_it() -> None:
    spans = spanned(Intervals("t", (("a", 0.9, 1.1, 1.3), ("b", 1.2, 1.3, 1.4)), 1.0))
    (_, _, low, middle, high, _), other = spans.rows
    assert low < spans.at < middle < high
    assert spans.at < other[2]


def test_ticks_are_round() -> None:
    assert list(ticks(0, 100)) == [0, 20, 40, 60, 80, 100]
    assert list(ticks(3, 3)) == [3]


def test_a_page_draws_them_without_scripts_and_a_terminal_leaves_them_out(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report("bench", Verdict.DONE, (Drawn(),))
    page = to_html(report)
    assert page.count("<svg") == 2
    assert page.count("<script>") == 1
    assert "<b>a</b>" not in page
    assert not re.search(r"\son\w+=", page)
    show(report, console(80))
    assert capsys.readouterr().out.strip() == "Drawn"
