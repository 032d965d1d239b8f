"""A page of the viewer in Debian's Chromium. Without the browser or without playwright these tests are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.viewer.browser.page import written

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on PATH: `apt-get install chromium`")
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: `pip install playwright`")
    with driver.sync_playwright() as running:
        # Chromium's sandbox needs rights that containers don't have; the pages are ours.
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--force-color-profile=srgb"])
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of a scene from disk with the network off. Errors, refused content and requests fail the test."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def open_page(
        scene: Any, hash_: str = "", *, text: str | None = None, size: tuple[int, int] = (1280, 800), **how: Any
    ) -> Any:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, offline=True, **how)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
        )
        path = written(tmp_path, scene, f"view{len(contexts)}.html", text)
        page.on(
            "request",
            lambda request: (
                complaints.append(f"request: {request.url}")
                if not request.url.startswith((path.as_uri(), "blob:"))
                else None
            ),
        )
        page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.goto(path.as_uri() + hash_)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def of(page: Any, expression: str) -> Any:
    """The value of an expression about the page's state, `app`."""
    return page.evaluate(f"() => {{ const app = window.onnxsmithView; return {expression}; }}")


def until(page: Any, expression: str) -> None:
    """Waits until an expression is true. playwright's own waiting evaluates text, which the page's policy refuses."""
    for _ in range(100):
        if of(page, expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")


def settled(page: Any) -> None:
    """Waits until the picture was drawn with all its edges and the address was written."""
    page.wait_for_timeout(600)
