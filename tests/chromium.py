"""Pages in Debian's Chromium. Without the browser or without playwright the tests that use it are skipped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

FromDisk = Callable[..., Any]


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
def from_disk(browser: Any) -> Iterator[FromDisk]:
    """Opens a page from disk with the network off. Errors, refused content and requests fail the test."""
    contexts: list[Any] = []
    complaints: list[str] = []

    def open_page(path: Path, hash_: str = "", *, size: tuple[int, int] = (1280, 800), **how: Any) -> Any:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, offline=True, **how)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on(
            "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
        )
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
