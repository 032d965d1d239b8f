"""axe-core finds no serious fault in the page."""

from __future__ import annotations

from typing import Any

import pytest

from tests.viewer.browser import scenes
from tests.viewer.browser.conftest import Open, settled
from tests.viewer.browser.page import ROOT

AXE = ROOT / "viewer" / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = pytest.mark.skipif(
    not AXE.exists(), reason="`npm ci` was not run in viewer: `make test` does where npm is"
)


def faults(page: Any) -> list[str]:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run()")["violations"]
    return [
        f"{one['id']}: {[node['target'] for node in one['nodes']][:4]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_fault(opened: Open, theme: str) -> None:
    page = opened(scenes.with_overlays(2), color_scheme=theme)
    assert faults(page) == []
    page.evaluate("window.onnxsmithView.jump(0, { kind: 'node', ref: 0 })")
    for tab in ("Found", "Figures", "Program", "Tensors", "Outline"):
        page.locator("[role=tab]", has_text=tab).click()
        if tab == "Found":
            page.locator("input[type=search]").fill("norm")
        settled(page)
        assert faults(page) == [], tab
    page.locator("canvas[role=application]").focus()
    page.keyboard.press("?")
    assert faults(page) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_fault_with_two_models(opened: Open, theme: str) -> None:
    page = opened(scenes.two(2), color_scheme=theme)
    page.locator("canvas[role=application]").first.focus()
    page.keyboard.press("d")
    settled(page)
    assert faults(page) == []


def test_no_serious_fault_where_nothing_can_be_shown(opened: Open) -> None:
    assert faults(opened(None, text="{")) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_fault_in_a_narrow_window_at_an_address_that_leads_nowhere(opened: Open, theme: str) -> None:
    page = opened(scenes.with_overlays(2), "#nolevel&at=node:softmax.1", size=(400, 800), color_scheme=theme)
    assert page.locator(".lost").is_visible()
    assert faults(page) == []
