"""On paper: the whole level on white, as large as the page allows, with legend, and the list beside it as a table."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, of, settled, until

UPRIGHT, ACROSS = (612, 792), (792, 612)
"""US Letter in points, which Chromium takes where nothing else is said."""


def on_paper(page: Any) -> None:
    """Shows the page as it is printed, and waits until it is drawn so."""
    page.emulate_media(media="print")
    until(page, "document.querySelector('.paper .sheet')")


def pdf(page: Any, path: Path) -> list[tuple[int, int]]:
    """Prints the page, and returns the size of each sheet in points."""
    page.pdf(path=path, prefer_css_page_size=True)
    found = re.findall(rb"/MediaBox \[0 0 ([0-9.]+) ([0-9.]+)\]", path.read_bytes())
    return [(round(float(width)), round(float(height))) for width, height in found]


def _texts(page: Any) -> list[str]:
    return page.locator(".paper svg text").all_text_contents()


def test_the_whole_level_is_printed(opened: Open, tmp_path: Path) -> None:
    """Sixty nodes one below the other: most lie outside the window."""
    scene = scenes.flat(60)
    page = opened(scene)
    on_paper(page)
    names = set(scene["models"][0]["nodes"]["name"])
    drawn = {text for text in _texts(page) if text in names}
    assert drawn == names
    # Strips beside each other keep the words of a long chain legible; no card is cut in two.
    parts = page.locator(".paper svg svg")
    assert parts.count() > 1
    box = page.locator(".paper svg").first.bounding_box()
    for part in parts.all():
        inner = part.bounding_box()
        assert inner["x"] >= box["x"] - 1
        assert inner["x"] + inner["width"] <= box["x"] + box["width"] + 1
        assert inner["y"] + inner["height"] <= box["y"] + box["height"] + 1
    page.emulate_media(media="screen")
    settled(page)
    assert page.locator(".paper svg").count() == 0
    assert pdf(page, tmp_path / "page.pdf")[0] == UPRIGHT


def test_types_beside_edges_are_one_text(opened: Open) -> None:
    page = opened(scenes.flat(6))
    on_paper(page)
    texts = _texts(page)
    assert any(re.search(r"\d float32$", text) for text in texts), texts
    assert all(text == text.strip() for text in texts)


def test_a_wide_level_lies_across(opened: Open, tmp_path: Path) -> None:
    maker = scenes.ModelMaker()
    maker.room("main", "graph", "")
    x = maker.value("x", kind=1)
    for at in range(24):
        _, y = maker.node("Relu", [x], name=f"side_{at}")
        maker.model["values"]["kind"][y] = 2
    page = opened(scenes.scene(maker.finish()))
    sizes = pdf(page, tmp_path / "page.pdf")
    assert sizes[0] == ACROSS
    assert set(sizes[1:]) == {UPRIGHT}  # the table and the inspector
    on_paper(page)
    assert {f"side_{at}" for at in range(24)} <= set(_texts(page))


def test_two_pictures_get_a_sheet_each(opened: Open, tmp_path: Path) -> None:
    page = opened(scenes.two(2))
    page.keyboard.press("d")
    on_paper(page)
    assert page.locator(".paper .sheet").count() == 2
    assert "old.onnx" in page.locator(".paper .sheet h2").first.inner_text()
    legend = page.locator(".paper .sheet .legend").first.inner_text()
    assert "removed" in legend
    assert len(pdf(page, tmp_path / "page.pdf")) >= 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_are_those_of_paper(opened: Open, scheme: str) -> None:
    page = opened(scenes.with_overlays(2), color_scheme=scheme)
    page.locator("select").select_option("family")
    on_paper(page)
    assert page.locator(".paper svg rect").first.get_attribute("fill") == "#ffffff"
    dots = page.locator(".paper .legend .dot").evaluate_all(
        "dots => dots.map((dot) => getComputedStyle(dot).backgroundColor)"
    )
    assert dots[0] == "rgb(47, 111, 191)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert page.locator(".inspector").is_visible()
    for gone in ("header", "main", ".left"):
        assert not page.locator(gone).first.is_visible()


@pytest.mark.parametrize(
    ("tab", "head", "rows"),
    [
        ("Outline", ["Item", "Name", ""], 5),
        ("Found", ["Kind", "What", "Matched", "Where"], 2),
        ("Figures", ["Figure", "Operator", "Node", "Remark"], 17),
        ("Tensors", ["Tensor", "Type", "Size", "Share", "Read by"], 15),
        ("Program", ["", "Line", "Nodes"], 33),
    ],
)
def test_the_list_beside_it_is_a_table(opened: Open, tab: str, head: list[str], rows: int) -> None:
    page = opened(scenes.with_overlays(2))
    page.evaluate("window.onnxsmithView.searchFor('softmax_')")
    page.locator("[role=tab]", has_text=tab).click()
    until(page, f"document.querySelector('[role=tab][aria-selected=true]').textContent.includes('{tab}')")
    on_paper(page)
    table = page.locator(".paper table")
    assert table.locator("th").all_text_contents() == head
    assert table.locator("tbody tr").count() == rows
    assert of(page, "document.querySelector('.paper table').scrollWidth <= document.body.clientWidth")


def test_a_list_that_is_hidden_is_not_printed(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    page.keyboard.press("l")
    on_paper(page)
    assert page.locator(".paper table").count() == 0


def test_words_of_a_saved_picture_keep_their_spaces(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    assert 'xml:space="preserve"' in of(page, "app.pane.svg('title')")
