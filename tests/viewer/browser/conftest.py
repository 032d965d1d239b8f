"""A page of the viewer in Debian's Chromium."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chromium import FromDisk
from tests.viewer.browser.page import written

Open = Callable[..., Any]


@pytest.fixture
def opened(from_disk: FromDisk, tmp_path: Path) -> Open:
    """Opens the page of a scene from disk with the network off. Errors, refused content and requests fail the test."""
    count = itertools.count(1)

    def open_page(scene: Any, hash_: str = "", *, text: str | None = None, **how: Any) -> Any:
        return from_disk(written(tmp_path, scene, f"view{next(count)}.html", text), hash_, **how)

    return open_page


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
