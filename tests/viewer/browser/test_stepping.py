"""`n`, `w` and `d` go through a list in the order of the graph, say where they are, and start again at the end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, of, settled

LEGIBLE = 0.6


def _inside(page: Any, model: int) -> bool:
    """Whether all that is selected in a picture is in sight."""
    return page.evaluate(
        """(model) => {
          const side = window.onnxsmithView.sides[model];
          const seen = side.camera.view();
          return side.selection.length > 0 && side.boxes(side.selection).every((box) =>
            box.left >= seen.left && box.right <= seen.right && box.top >= seen.top && box.bottom <= seen.bottom);
        }""",
        model,
    )


def _top(page: Any) -> float:
    """The height at which the selection lies in the first picture, as if all levels were open."""
    return page.evaluate(
        """() => {
          const [side] = window.onnxsmithView.sides;
          return side.boxes(side.selection)[0].top;
        }"""
    )


def test_differences_follow_the_graph(opened: Open) -> None:
    scene = scenes.two(4)
    page = opened(scene)
    page.evaluate("window.onnxsmithView.openAll()")
    count = of(page, "app.differences.changes.length")
    tops = []
    for at in range(count):
        page.keyboard.press("d")
        settled(page)
        assert f"Difference {at + 1} of {count}" in page.locator(".toast").inner_text()
        for model in (0, 1):
            assert of(page, f"app.sides[{model}].camera.zoom") >= LEGIBLE
        assert _inside(page, of(page, "app.active"))
        if of(page, "app.active") == 0:
            tops.append(_top(page))
    assert tops == sorted(tops)
    page.keyboard.press("d")
    assert f"Difference 1 of {count}, from the start again" in page.locator(".toast").inner_text()
    page.keyboard.press("Shift+D")
    assert f"Difference {count} of {count}, from the end again" in page.locator(".toast").inner_text()


def test_a_region_is_in_sight_in_both_pictures(opened: Open) -> None:
    scene, _, _ = scenes.two_with_region()
    page = opened(scene)
    for _ in range(of(page, "app.differences.changes.findIndex(({ state }) => state === 'otherwise') + 1")):
        page.keyboard.press("d")
    settled(page)
    for model in (0, 1):
        assert of(page, f"app.sides[{model}].camera.zoom") >= LEGIBLE
    assert _inside(page, 1)  # two nodes beside each other; the three of the first lie too far apart for words
    first = "app.sides[0].boxes(app.sides[0].selection)[0]"
    seen = "app.sides[0].camera.view()"
    assert of(page, f"{first}.top >= {seen}.top && {first}.top <= {seen}.bottom")


def test_a_node_of_two_regions_does_not_hold_the_steps(opened: Open) -> None:
    scene, ours, theirs = scenes.two_with_region()
    scene["difference"]["regions"] = [[ours, theirs], [ours[:2], theirs[:1]]]
    page = opened(scene)
    count = of(page, "app.differences.changes.length")
    said = []
    for _ in range(count):
        page.keyboard.press("d")
        said.append(page.locator(".toast").inner_text().split(":")[0])
    assert said == [f"Difference {at + 1} of {count}" for at in range(count)]


@pytest.mark.parametrize(("key", "noun"), [("n", "Result"), ("w", "Node")])
def test_other_lists_say_where_they_are(opened: Open, key: str, noun: str) -> None:
    page = opened(scenes.with_overlays(2))
    page.keyboard.press("/")
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.keyboard.press(key)
    assert noun in page.locator(".toast").inner_text()
    assert " of " in page.locator(".toast").inner_text()


def test_enter_gives_the_keys_to_the_picture(opened: Open) -> None:
    page = opened(scenes.with_overlays(3))
    field = page.locator("input[type=search]")
    page.keyboard.press("/")
    page.keyboard.type("norm1")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "application"
    page.keyboard.press("n")
    page.keyboard.press("n")
    assert field.input_value() == "norm1"
    assert page.locator(".inspector .name").inner_text() == "norm1_2"
    page.keyboard.press("Shift+N")
    assert page.locator(".inspector .name").inner_text() == "norm1_1"
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.selectionEnd - document.activeElement.selectionStart") == 5
    page.keyboard.press("Escape")
    assert field.input_value() == ""
    assert of(page, "app.side.found.length") == 0
    assert page.evaluate("document.activeElement.getAttribute('role')") == "application"


def test_enter_right_after_typing_looks_for_what_was_typed(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    for query, name in (("softmax", "softmax_0"), ("norm1", "norm1_0")):
        page.keyboard.press("/")
        page.keyboard.type(query)  # faster than the moment of rest after which the search begins
        page.keyboard.press("Enter")
        assert page.locator(".inspector .name").inner_text() == name


def test_a_query_without_results_keeps_the_field(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    page.keyboard.press("/")
    page.keyboard.type("nowhere")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.type") == "search"
    assert "Nothing is found" in page.locator(".toast").inner_text()


def test_escape_clears_the_selection_and_then_the_search(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    page.keyboard.press("/")
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert of(page, "app.side.selection.length") == 0
    assert of(page, "app.side.found.length") > 0
    page.keyboard.press("Escape")
    assert of(page, "app.side.found.length") == 0
    assert page.locator("input[type=search]").input_value() == ""


def test_a_colour_that_is_chosen_gives_the_keys_back(opened: Open) -> None:
    page = opened(scenes.with_overlays(2))
    select = page.locator(".colour-by select")
    select.focus()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "application"
    select.dispatch_event("pointerdown")
    select.select_option("1")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "application"


def test_a_fused_node_says_the_same_everywhere(opened: Open) -> None:
    scene = scenes.with_overlays(2)
    text = "fused into patches, which has the time: 46.4 µs in Conv_kernel (Conv)"
    scene["overlays"][0] |= {"nodes": [0, 1], "figures": [46.4e-6, 0.0], "texts": ["46.4 µs in Conv_kernel", text]}
    page = opened(scene)
    page.evaluate("window.onnxsmithView.jump(0, { kind: 'node', ref: 1 })")
    panel = page.locator(".inspector section", has=page.locator("h3", has_text="Measured")).inner_text()
    assert "0 s of its own" in panel
    assert text in panel
    page.evaluate(
        """() => {
          const { page, side } = window.onnxsmithView;
          page.hover(side, { ...side.spot({ kind: "node", ref: 1 }), part: "body" });
        }"""
    )
    tooltip = page.locator("canvas[role=application]").get_attribute("title")
    assert tooltip.splitlines()[1:] == ["time: 0 s of its own", text]
    assert of(page, "app.side.paint.nodeNote(1)") == "0 s of its own"
    page.keyboard.press("w")
    page.keyboard.press("w")
    assert "0 s of its own" in page.locator(".row.current:visible").inner_text()


def test_levels_are_listed_by_their_sum_where_figures_add_up(opened: Open) -> None:
    page = opened(scenes.with_overlays(3))
    page.keyboard.press("w")
    page.locator("#panel-figures .chip", has_text="Levels").click()
    page.locator("canvas[role=application]").focus()
    page.keyboard.press("w")
    count = of(page, "app.overlays[0].levels.length")
    assert f"Level 1 of {count}" in page.locator(".toast").inner_text()
    assert of(page, "app.side.selection[0].ref === app.overlays[0].levels[0]")
    assert page.locator("#panel-figures [role=option]").first.inner_text().startswith("Σ ")
    page.locator("select").select_option("1")  # errors do not add up
    assert page.locator("#panel-figures .chip").count() == 0
