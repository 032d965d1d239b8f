"""The page looks as it did: screenshots, made small, beside the ones in `pictures`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import pictures
from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, settled

PICTURES = Path(__file__).parent / "pictures"


def check(page: Any, name: str, *, write: bool = True) -> None:
    settled(page)
    pictures.check(page, PICTURES / f"{name}.png", write=write)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_node_in_opened_rooms(opened: Open, theme: str) -> None:
    page = opened(scenes.with_overlays(3), color_scheme=theme)
    page.locator("select").select_option("family")
    page.evaluate("window.onnxsmithView.jump(0, { kind: 'node', ref: 9 })")
    check(page, f"rooms_{theme}")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_overlay(opened: Open, theme: str) -> None:
    page = opened(scenes.with_overlays(3), color_scheme=theme)
    page.evaluate("window.onnxsmithView.openAll()")
    page.evaluate("window.onnxsmithView.fit()")
    check(page, f"overlay_{theme}")


def test_a_difference(opened: Open) -> None:
    page = opened(scenes.two(3))
    page.locator("canvas[role=application]").first.focus()
    page.keyboard.press("d")
    check(page, "difference")


def test_far_out(opened: Open) -> None:
    page = opened(scenes.flat(3000))
    page.evaluate("window.onnxsmithView.pane.zoomBy(0.06)")
    check(page, "far_out")


def test_a_changed_picture_is_noticed(opened: Open) -> None:
    """The tolerance does not hide another colour of the cards."""
    page = opened(scenes.with_overlays(3))
    page.locator("select").select_option("2")
    page.evaluate("window.onnxsmithView.jump(0, { kind: 'node', ref: 9 })")
    with pytest.raises(AssertionError):
        check(page, "rooms_light", write=False)
