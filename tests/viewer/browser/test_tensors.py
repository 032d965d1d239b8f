"""The list of stored tensors: by size, sorted, filtered, and a way to the nodes that read them."""

from __future__ import annotations

from typing import Any

from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, of


def _rows(page: Any) -> list[str]:
    return page.locator("#panel-tensors [role=option]").all_inner_texts()


def test_the_largest_comes_first_with_its_share_and_its_reader(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    page.keyboard.press("b")
    first = _rows(page)[0]
    total = sum(constant["bytes"] for constant in scenes.with_overlays(2)["models"][0]["constants"].values())
    assert "9.44 MB" in first
    assert f"{100 * 9437184 / total:.1f} %" in first
    assert "encoder.layer.0.up" in first
    assert "float32[768, 3072] → MatMul up_0" in first
    assert "15 stored tensors" in page.locator("#panel-tensors .head").inner_text()


def test_it_leads_to_the_reader(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    page.locator("[role=tab]", has_text="Tensors").click()
    page.locator("#panel-tensors [role=option]", has_text="encoder.layer.1.k").click()
    assert page.locator(".inspector .name").inner_text() == "k_1"
    assert page.locator(".toast").inner_text() == "encoder.layer.1.k: its reader"


def test_a_tensor_with_several_readers_leads_to_each(opened: Open) -> None:
    maker = scenes.ModelMaker()
    maker.room("main", "graph", "")
    x = maker.value("x", kind=1)
    shared = maker.constant("shared", "float32[8]", bytes=32)
    maker.constant("alone", "float32[1]", bytes=4)
    _, y = maker.node("Add", [x, shared], name="first")
    _, z = maker.node("Mul", [y, shared], name="second")
    maker.model["values"]["kind"][z] = 2
    page = opened(scenes.scene(maker.finish()))
    page.keyboard.press("b")
    said = []
    for row, presses in (("shared", 3), ("alone", 1)):
        for _ in range(presses):
            page.locator("#panel-tensors [role=option]", has_text=row).click()
            said.append((page.locator(".inspector .name").inner_text(), page.locator(".toast").inner_text()))
    assert said[:3] == [
        ("first", "shared: reader 1 of 2"),
        ("second", "shared: reader 2 of 2"),
        ("first", "shared: reader 1 of 2"),
    ]
    assert said[3] == ("constant", "alone: no node reads it")


def test_it_is_sorted_both_ways(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    page.keyboard.press("b")
    page.locator(".chip", has_text="Name").click()
    assert "classifier.weight" in _rows(page)[0]
    assert page.evaluate("document.activeElement.textContent") == "Name ↓"
    page.keyboard.press("Enter")
    assert "shape" in _rows(page)[0]
    page.locator(".chip", has_text="Size").click()
    assert "9.44 MB" in _rows(page)[0]


def test_it_is_filtered_and_used_by_keys_alone(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    page.keyboard.press("b")
    page.keyboard.type("768x3072")  # b, n, d and the like are letters of the filter here
    assert [("up" in row) for row in _rows(page)] == [True, True]
    assert "2 of 15 stored tensors" in page.locator("#panel-tensors .head").inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator(".inspector .name").inner_text() == "up_1"
    page.keyboard.press("b")
    page.keyboard.type("int64")
    page.keyboard.press("Enter")
    assert page.locator(".inspector .name").inner_text() == "node_reshape_1"
    assert page.evaluate("document.activeElement.getAttribute('role')") == "application"
    page.keyboard.press("b")
    page.keyboard.press("Escape")
    assert len(_rows(page)) == 15


def test_with_two_models_it_lists_the_active_one(opened: Open) -> None:
    page = opened(scenes.two(2))
    page.keyboard.press("b")
    count = "app.side.graph.model.values.kind.filter((kind) => kind === 3).length"
    for _ in range(2):
        page.keyboard.press("Escape")
        assert f"{of(page, count)} stored tensors" in page.locator("#panel-tensors .head").inner_text()
        page.keyboard.press("x")


def test_a_row_that_is_cut_off_has_a_tooltip_with_all_of_it(opened: Open) -> None:
    maker = scenes.ModelMaker()
    maker.room("main", "graph", "")
    x = maker.value("x", kind=1)
    long = maker.constant("a.very.long.prefix." * 6 + "weight", "float32[8]", bytes=32)
    short = maker.constant("b", "float32[8]", bytes=32)
    _, y = maker.node("Add", [x, long], name="first")
    _, z = maker.node("Mul", [y, short], name="second")
    maker.model["values"]["kind"][z] = 2
    page = opened(scenes.scene(maker.finish()))
    page.keyboard.press("b")
    rows = page.locator("#panel-tensors [role=option]")
    for at in range(2):
        rows.nth(at).locator("b").hover()
    assert "prefix.weight" in rows.nth(0).get_attribute("title")
    assert rows.nth(1).get_attribute("title") is None
