"""A narrow window, a page at 200 %, and keys that can do nothing here."""

from __future__ import annotations

from typing import Any

import pytest

from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, of, settled

NARROW = (400, 800)


def _cut_off(page: Any, selector: str) -> list[str]:
    """The elements that lie outside the window at least in part."""
    return page.evaluate(
        """(selector) => [...document.querySelectorAll(selector)].filter((element) => {
          const box = element.getBoundingClientRect();
          return box.width && (box.left < -1 || box.right > innerWidth + 1 || box.bottom > innerHeight + 1);
        }).map((element) => element.title || element.textContent)""",
        selector,
    )


@pytest.mark.parametrize("size", [NARROW, (640, 400)], ids=["400 px", "200 %"])
@pytest.mark.parametrize("make", [lambda: scenes.with_overlays(2), lambda: scenes.two(2)], ids=["report", "two"])
def test_everything_around_the_picture_can_be_reached(opened: Open, size: tuple[int, int], make: Any) -> None:
    page = opened(make(), size=size, device_scale_factor=2)
    assert _cut_off(page, "header button, header select, header input, footer button, .legend, .legend .key") == []
    assert page.locator("input[type=search]").bounding_box()["width"] >= 120
    assert page.locator("canvas[role=application]").first.bounding_box()["height"] >= 200
    page.keyboard.press("l")
    page.keyboard.press("i")
    assert _cut_off(page, "aside") == []


def test_a_list_does_not_cover_what_it_leads_to(opened: Open) -> None:
    page = opened(scenes.with_overlays(2), size=NARROW)
    page.keyboard.press("/")
    page.keyboard.type("softmax")
    settled(page)
    assert page.locator("aside.left").is_visible()
    page.keyboard.press("Enter")
    assert not page.locator("aside.left").is_visible()
    for key in ("n", "w"):
        page.keyboard.press(key)
        assert not page.locator("aside.left").is_visible()
        assert " of " in page.locator(".toast").inner_text()
    page.keyboard.press("b")
    page.locator("#panel-tensors [role=option]").first.click()
    assert not page.locator("aside.left").is_visible()


def test_the_help_begins_at_its_top(opened: Open) -> None:
    page = opened(scenes.flat(20), size=NARROW)
    page.keyboard.press("?")
    assert page.evaluate("document.querySelector('dialog').scrollTop") == 0


def test_the_zoom_that_is_written_is_that_of_the_picture(opened: Open) -> None:
    page = opened(scenes.two(3))
    page.keyboard.press("f")
    page.keyboard.press("d")
    zoom = of(page, "app.side.camera.zoom")
    assert page.locator(".zoom").inner_text() == f"{round(100 * zoom)} %"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("c", "Nothing is selected"),
        ("Enter", "Nothing is selected"),
        ("Shift+Enter", "Nothing is selected"),
        ("Backspace", "This is the main graph"),
        ("n", "Nothing is found"),
        ("w", "There are no figures"),
        ("d", "There is no second model"),
        ("p", "This page has no program"),
        ("v", "There is no second model"),
        ("x", "There is no second model"),
    ],
)
def test_a_key_that_can_do_nothing_says_why(opened: Open, key: str, words: str) -> None:
    page = opened(scenes.flat(20))
    page.keyboard.press(key)
    assert words in page.locator(".toast").inner_text()


def test_one_picture_keeps_the_focus(opened: Open) -> None:
    page = opened(scenes.two(2))
    for _ in range(2):
        page.keyboard.press("v")
        assert page.evaluate("document.activeElement.getAttribute('role')") == "application"


def test_what_is_removed_stands_beside_something(opened: Open) -> None:
    """A removed node far from all that has a partner: the other picture isn't empty."""
    wide = []
    for name, count in (("old.onnx", 30), ("new.onnx", 1)):
        maker = scenes.ModelMaker(name)
        maker.room("main", "graph", "")
        x = maker.value("x", kind=1)
        outs = [maker.node("Relu", [x], name=f"side_{at}")[1] for at in range(count)]
        _, y = maker.node("Add", outs, name="sum")
        maker.model["values"]["kind"][y] = 2
        wide.append(maker.finish())
    removed = list(range(1, 30))
    found = {"pairs": [[0, 0, 0], [30, 1, 0]], "removed": removed, "added": [], "changes": {}}
    page = opened(scenes.scene(*wide, difference=found))
    page.evaluate("window.onnxsmithView.jump(0, { kind: 'node', ref: 29 })")
    settled(page)
    seen = "app.sides[1].camera.view()"
    box = "app.sides[1].picture.box(app.sides[1].spot({ kind: 'node', ref: 1 }))"
    assert of(page, f"{box}.right > {seen}.left && {box}.left < {seen}.right")
    assert of(page, f"{box}.bottom > {seen}.top && {box}.top < {seen}.bottom")


def test_a_frame_without_a_size_at_first_shows_its_panels_later(browser: Any) -> None:
    """As the frame of a notebook, now and then."""
    from html import escape

    from tests.viewer.browser.page import html

    page = browser.new_page()
    held = escape(html(scenes.with_overlays(1)), quote=True)
    page.set_content(f'<iframe width="0" height="700" sandbox="allow-scripts" srcdoc="{held}"></iframe>')
    frame = page.frame_locator("iframe")
    frame.locator("canvas[role=application]").wait_for(state="attached")
    page.evaluate("document.querySelector('iframe').width = 1000")
    frame.locator("[role=treeitem]").nth(1).click()
    assert frame.locator("aside.right").is_visible()
    page.close()


def _covered_by_maps(page: Any) -> int:
    """How many items lie under a map that hides them."""
    return page.evaluate(
        """() => {
          let count = 0;
          for (const pane of window.onnxsmithView.panes) {
            const { element } = pane.minimap;
            if (element.hidden || element.matches(".away, .over")) continue;
            const map = element.getBoundingClientRect(), whole = pane.canvas.getBoundingClientRect();
            for (const box of pane.itemBoxes())
              if (box.right + whole.left > map.left && box.left + whole.left < map.right
                  && box.bottom + whole.top > map.top && box.top + whole.top < map.bottom) count += 1;
          }
          return count;
        }"""
    )


def test_no_map_covers_the_pictures_of_two_models(opened: Open) -> None:
    page = opened(scenes.two(8), size=NARROW)
    page.keyboard.press("e")
    page.keyboard.press("0")
    settled(page)
    assert _covered_by_maps(page) == 0
    assert page.locator(".minimap.away").count() == 2


def test_a_map_steps_aside_or_lets_nodes_shine_through(opened: Open) -> None:
    page = opened(scenes.flat(300), size=(1400, 850))
    for key in ("f", "+", "+", "+", "ArrowDown", "ArrowRight", "0"):
        page.keyboard.press(key)
        settled(page)
        assert _covered_by_maps(page) == 0


def test_the_lines_above_the_picture_can_be_closed(opened: Open) -> None:
    scene = scenes.with_overlays(2)
    scene["warnings"] = [f"check.json: target {at} was not tried, because it is not installed here" for at in range(8)]
    page = opened(scene, size=NARROW)
    lines = page.locator(".notice")
    assert lines.bounding_box()["height"] < 80
    assert page.locator(".note", has_text="target 7").count() == 0
    page.get_by_title("Close these lines").click()
    assert not lines.is_visible()
    page.keyboard.press("i")
    assert scene["warnings"][7] in page.locator(".inspector").inner_text()


@pytest.mark.parametrize("width", [400, 640, 1400])
def test_keys_go_through_the_header_in_the_order_of_the_eyes(opened: Open, width: int) -> None:
    page = opened(scenes.two(2), size=(width, 800))
    places = page.evaluate(
        """() => [...document.querySelectorAll("header button, header input, header select")].map((element) => {
          const { left, top, height } = element.getBoundingClientRect();
          return [Math.round((top + height / 2) / 20), left];
        })"""
    )
    assert places == sorted(places)
