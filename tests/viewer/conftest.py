"""The tests here need the template of the page, not the script and the style that are built from `viewer/`."""

from __future__ import annotations

from importlib.resources import files

import pytest


@pytest.fixture(autouse=True)
def placeholder(monkeypatch: pytest.MonkeyPatch) -> None:
    template = files("onnxsmith.viewer.page").joinpath("page.html.jinja").read_text(encoding="utf-8")
    monkeypatch.setattr("onnxsmith.viewer.html_page.pieces", lambda: (template, "start(1 < 2 && 'ä')", "body > p {}"))
