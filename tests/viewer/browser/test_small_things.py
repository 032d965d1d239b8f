"""What a person trips over: addresses that lead nowhere, a map over the selection, Shift in the outline, words."""

from __future__ import annotations

import json

from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, of, settled, until
from tests.viewer.browser.page import BUILT


def test_an_address_that_leads_nowhere_is_said(opened: Open) -> None:
    page = opened(scenes.with_overlays(2), "#encoder.layer.9/zz&at=node:ghost&colour=memory")
    line = page.locator(".lost")
    page.wait_for_timeout(3000)  # longer than a message that goes away
    for words in ("encoder.layer.9/zz; encoder is shown", "No node is called ghost", "called memory"):
        assert words in line.inner_text()
    assert page.locator(".crumbs [aria-current]").inner_text() == "encoder"
    line.get_by_title("Close this message").click()
    assert not line.is_visible()
    assert not opened(scenes.with_overlays(2), "#encoder.layer.1").locator(".lost").is_visible()
    assert not opened(scenes.with_overlays(2), "#softmax_1").locator(".lost").is_visible()


def test_an_address_of_an_older_file_offers_near_names(opened: Open) -> None:
    page = opened(scenes.with_overlays(2), "#encoder&at=node:encoder.softmax.1")
    page.locator(".lost button", has_text="softmax_1").click()
    settled(page)
    assert page.locator(".inspector .name").inner_text() == "softmax_1"
    assert not page.locator(".lost").is_visible()


def test_shift_and_click_select_several_in_the_outline(opened: Open) -> None:
    page = opened(scenes.flat(20))
    rows = page.locator("[role=treeitem]")
    rows.nth(1).click()
    rows.nth(3).click(modifiers=["Shift"])
    assert of(page, "app.side.selection.length") == 2
    rows.nth(2).click()
    assert of(page, "app.side.selection.length") == 1


def test_the_map_gives_way_to_the_selection(opened: Open) -> None:
    page = opened(scenes.flat(300))
    page.evaluate("window.onnxsmithView.jump(0, { kind: 'node', ref: 100 })")
    settled(page)
    # The camera is moved until the node lies under the map.
    page.evaluate(
        """() => {
          const { pane, side } = window.onnxsmithView;
          const box = side.picture.box(side.spot({ kind: "node", ref: 100 }));
          const { camera } = side;
          const [x, y] = [camera.screenX((box.left + box.right) / 2), camera.screenY((box.top + box.bottom) / 2)];
          pane.panBy(camera.width - 40 - x, camera.height - 40 - y);
        }"""
    )
    settled(page)
    assert not page.evaluate(
        """() => {
          const { pane, side } = window.onnxsmithView;
          const map = pane.minimap.element.getBoundingClientRect(), whole = pane.canvas.getBoundingClientRect();
          const [box] = pane.selectedBoxes();
          return box.right + whole.left > map.left && box.left + whole.left < map.right
            && box.bottom + whole.top > map.top && box.top + whole.top < map.bottom;
        }"""
    )


def test_counts_of_operators_stay_on_one_line(opened: Open) -> None:
    page = opened(scenes.flat(30))
    page.locator(".share span:last-child").first.evaluate("element => { element.textContent = '1,234,567'; }")
    heights = [row.bounding_box()["height"] for row in page.locator(".share").all()]
    assert max(heights) - min(heights) < 1


def test_levels_are_called_levels(opened: Open) -> None:
    """The documentation calls them so, too."""
    page = opened(scenes.with_overlays(2))
    page.keyboard.press("?")
    text = page.locator("body").inner_text() + json.dumps(
        [button.get_attribute("title") for button in page.locator("button").all()]
    )
    assert "level" in text
    assert "room" not in text.lower()
    for words in ("All rooms", "Rooms are open", "in this room"):
        assert words not in (BUILT / "viewer.js").read_text(encoding="utf-8")


def test_a_figure_leaves_the_name_on_the_card(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    page.evaluate("window.onnxsmithView.openAll()")
    # A node without attributes and weights: its name is the only line below the operator.
    node = of(page, "app.overlays[0].overlay.nodes.find((one) => app.side.labels.node(one).lines.length === 1)")
    page.evaluate("node => window.onnxsmithView.jump(0, { kind: 'node', ref: node })", node)
    settled(page)
    name = of(page, f"app.side.graph.nodeName({node})")
    figure = of(page, f"app.overlays[0].writeNode({node})")
    drawn = of(page, "app.pane.svg('picture')")
    assert f">{name}</text>" in drawn
    assert f">{figure}</text>" in drawn


def test_the_help_lists_what_can_be_searched_for(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    page.keyboard.press("?")
    words = page.locator("dialog").inner_text()
    for form in ("op:conv", "strides=2,2", "3x224", "reads:mask"):
        assert form in words
    page.keyboard.press("Escape")
    until(page, "!document.querySelector('dialog[open]')")
    page.keyboard.press("/")
    until(page, "document.activeElement.tagName === 'INPUT'")
    page.keyboard.type("op:softmax axis=-1")
    until(page, "document.querySelectorAll('#panel-results [role=option]').length === 2")
    assert "axis=-1" in page.locator("#panel-results [role=option]").first.inner_text()
