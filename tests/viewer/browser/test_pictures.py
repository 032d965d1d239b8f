"""The page looks as it did: screenshots, made small, beside the ones in `pictures`.

Small, so that single letters do not count, while a colour, a place or a size does. After a wanted change, on a machine
whose sans-serif font is DejaVu: `VIEWER_PICTURES=write python -m pytest tests/viewer/browser/test_pictures.py`."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, settled

PICTURES = Path(__file__).parent / "pictures"
SMALL = (192, 120)
SAMPLE = 328.3
"""Width of the sample text in the font of the pictures, DejaVu Sans, in pixels."""
SAME_FONT = (2.0, 0.02)
"""Most mean difference, in levels of 255, and share of points that differ by more than 32. Same machine: 0 and 0."""
OTHER_FONT = (10.0, 0.1)
"""The same where other fonts set the words. Measured with Liberation Sans: 7.7 and 0.08; other colours: 22 and 0.16."""


def tolerance(page: Any) -> tuple[float, float]:
    width = page.evaluate("""() => {
      const context = document.createElement("canvas").getContext("2d");
      context.font = "20px system-ui, sans-serif";
      return context.measureText("LayerNormalization 0123456789").width;
    }""")
    return SAME_FONT if abs(width - SAMPLE) < 1 else OTHER_FONT


def look(page: Any) -> Image.Image:
    settled(page)
    shot = Image.open(io.BytesIO(page.screenshot(caret="hide"))).convert("RGB")
    return shot.resize(SMALL, Image.Resampling.BOX)


def check(page: Any, name: str, *, write: bool = True) -> None:
    small = look(page)
    path = PICTURES / f"{name}.png"
    if write and os.environ.get("VIEWER_PICTURES") == "write":
        PICTURES.mkdir(exist_ok=True)
        small.save(path, optimize=True)
    away = np.abs(np.asarray(small, np.int16) - np.asarray(Image.open(path).convert("RGB"), np.int16)).max(axis=2)
    mean, share = tolerance(page)
    assert away.mean() <= mean
    assert (away > 32).mean() <= share


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
