"""What cards look like in the pages of JupyterLab, VS Code and GitHub, in light and dark themes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.base.report.verdict import Verdict
from onnxsmith.cli.render.notebook import to_html
from tests import pictures
from tests.chromium import FromDisk
from tests.notebooks import hosts
from tests.notebooks.cards import FIX, card

PICTURES = Path(__file__).parent / "pictures"
HOSTS = {"lab": hosts.lab, "code": hosts.code}
THEMES = ("light", "dark")
Shown = Callable[..., Any]

CONTRASTS = """() => {
  const luminance = ([r, g, b]) => [r, g, b]
    .map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = numbers(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const all = [];
  const walker = document.createTreeWalker(document.querySelector(".onnxsmith-card"), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.tagName === "STYLE") continue;
    const [one, other] = [numbers(getComputedStyle(element).color), ground(element)].map(luminance);
    const [high, low] = one > other ? [one, other] : [other, one];
    all.push([walker.currentNode.data.trim(), (high + 0.05) / (low + 0.05)]);
  }
  return all;
}"""
"""The contrast of each text of a card with its ground (WCAG 2.2, section 1.4.3)."""
LAYOUT = """() => [...document.querySelectorAll(".onnxsmith-card *:not(style)")].map(element => {
  const { left, top, width, height } = element.getBoundingClientRect();
  const card = document.querySelector(".onnxsmith-card").getBoundingClientRect();
  return [element.tagName, ...[left - card.left, top - card.top, width, height].map(Math.round)];
})"""
OTHER = """() => [...document.querySelectorAll(".neighbour, .neighbour *, .neighbour + p, body")].map(element => {
  const style = getComputedStyle(element);
  const names = [...style].filter(name => !/height|block-size|origin/.test(name));
  return names.map(name => `${element.tagName} ${name}: ${style.getPropertyValue(name)}`);
}).flat()"""
"""The whole style of another output and of the page; only the height of the page grows with a card."""


@pytest.fixture
def shown(from_disk: FromDisk, tmp_path: Path) -> Shown:
    """Opens a page with outputs in it."""

    def open_page(host: Callable[[str, str], str], outputs: str, theme: str, width: int = 800) -> Any:
        path = tmp_path / "cells.html"
        path.write_text(host(outputs, theme), encoding="utf-8")
        return from_disk(path, size=(width, 500), color_scheme="null")

    return open_page


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("host", HOSTS)
def test_a_card_looks_as_it_did(shown: Shown, host: str, theme: str) -> None:
    page = shown(HOSTS[host], to_html(card()), theme)
    pictures.check(page, PICTURES / f"{host}_{theme}.png")


def test_another_theme_is_noticed(shown: Shown) -> None:
    """The tolerance does not hide the colours of another theme."""
    page = shown(hosts.lab, to_html(card()), "dark")
    with pytest.raises(AssertionError):
        pictures.check(page, PICTURES / "lab_light.png", write=False)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("host", HOSTS)
def test_every_text_can_be_read(shown: Shown, host: str, theme: str) -> None:
    for verdict in Verdict:
        contrasts = shown(HOSTS[host], to_html(card(verdict)), theme).evaluate(CONTRASTS)
        assert len(contrasts) > 30
        assert [one for one in contrasts if one[1] < 4.5] == []


@pytest.mark.parametrize("host", HOSTS)
def test_rules_of_the_notebook_do_not_move_a_card(shown: Shown, host: str) -> None:
    page = shown(HOSTS[host], f'<div style="width: 700px">{to_html(card())}</div>', "light")
    alone = shown(hosts.plain, f'<div style="width: 700px">{to_html(card())}</div>', "light")
    assert page.evaluate(LAYOUT) == alone.evaluate(LAYOUT)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("host", HOSTS)
def test_a_card_changes_nothing_around_it(shown: Shown, host: str, theme: str) -> None:
    before = shown(HOSTS[host], "", theme).evaluate(OTHER)
    after = shown(HOSTS[host], to_html(card()), theme).evaluate(OTHER)
    assert sorted(set(after) ^ set(before)) == []


@pytest.mark.parametrize("width", [320, 800])
@pytest.mark.parametrize("host", HOSTS)
def test_nothing_is_wider_than_the_page(shown: Shown, host: str, width: int) -> None:
    wide = card(headline="a" * 300, title="b" * 300, notes=("c" * 300,))
    page = shown(HOSTS[host], to_html(wide), "light", width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_part_unfolds_without_a_script(shown: Shown) -> None:
    page = shown(hosts.lab, to_html(card()), "light")
    code = page.get_by_text("def forward(x):")
    assert not code.is_visible()
    page.get_by_text("Program").click()
    assert code.is_visible()


@pytest.mark.parametrize("theme", THEMES)
def test_without_styles_the_texts_stand_in_order(shown: Shown, theme: str) -> None:
    text = shown(hosts.untrusted, to_html(card(page="<p>never seen</p>")), theme).locator("body").inner_text()
    said = ["onnxsmith compare different", "a.onnx and b.onnx", "verify/different: output", FIX, "one size was not"]
    places = [text.index(one) for one in [*said, "Layers", "the error grows", "Program", "onnxsmith.view("]]
    assert places == sorted(places)
    assert "{" not in text.replace(FIX, "")


@pytest.mark.parametrize("theme", THEMES)
def test_the_frame_of_a_view_has_the_theme_of_the_notebook(shown: Shown, theme: str) -> None:
    inner = "<style>:root { color-scheme: light dark } body { background: light-dark(white, black) }</style>inside"
    page = shown(hosts.lab, to_html(card(page=inner)), theme)
    body = page.frame_locator("iframe").locator("body")
    colour = body.evaluate("element => getComputedStyle(element).backgroundColor")
    assert colour == {"light": "rgb(255, 255, 255)", "dark": "rgb(0, 0, 0)"}[theme]
