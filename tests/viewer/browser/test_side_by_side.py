"""Two pictures beside each other stay in sight, whichever of the two models is active."""

from __future__ import annotations

from typing import Any

import pytest

from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, of, settled

BOTH_SHOWN = """[...document.querySelectorAll("main .panes canvas")].filter(
    (canvas) => canvas.isConnected && canvas.getBoundingClientRect().width > 200
).length"""
IN_NEW = "app.scene.difference.added[0]"


def _jump(page: Any) -> None:
    page.evaluate(f"window.onnxsmithView.jump(1, {{ kind: 'node', ref: {of(page, IN_NEW)} }})")


def _click(page: Any) -> None:
    page.locator("main .panes .pane-box").nth(1).locator("canvas").first.click(position={"x": 100, "y": 200})


def _next(page: Any) -> None:
    for _ in range(8):
        page.keyboard.press("d")
        if of(page, "app.active") == 1:
            return


def _swap(page: Any) -> None:
    page.keyboard.press("x")


@pytest.mark.parametrize("step", [_jump, _click, _next, _swap], ids=["jump", "click", "next difference", "x"])
def test_both_pictures_stay(opened: Open, step: Any) -> None:
    page = opened(scenes.two(3))
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    assert page.evaluate(BOTH_SHOWN) == 2
    step(page)
    settled(page)
    assert of(page, "app.active") == 1
    assert page.evaluate(BOTH_SHOWN) == 2
    assert page.locator("main .panes .pane-box.active b").inner_text().lower() == "new"
    assert not errors


def test_one_picture_and_both_again(opened: Open) -> None:
    page = opened(scenes.two(3))
    _swap(page)
    for shown in (1, 2):
        page.keyboard.press("v")
        settled(page)
        assert page.evaluate(BOTH_SHOWN) == shown


def test_the_colours_of_a_report_come_first(opened: Open) -> None:
    scene = scenes.two(3)
    assert of(opened(scene), "app.colour") == "difference"
    nodes = list(range(4))
    figures = {"title": "time", "model": 1, "unit": "ms", "scale": "linear", "classes": [], "worst": "high"}
    scene["overlays"] = [figures | {"nodes": nodes, "figures": [1.0, 2.0, 3.0, 4.0], "texts": [""] * 4, "from": "r"}]
    assert of(opened(scene), "app.colour") == 0
