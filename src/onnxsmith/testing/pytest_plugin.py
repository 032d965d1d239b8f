"""The pytest plugin: a page for each failure of an assertion of `onnxsmith.testing`.

pytest loads this module in every run, so it imports nothing heavy. `--onnxsmith-pages FOLDER` names the folder of the
pages; by default they lie in pytest's cache, `.pytest_cache/d/onnxsmith`.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from onnxsmith.testing import pages

_FOLDER = "onnxsmith_pages"


def pytest_addoption(parser: Any) -> None:
    """Adds the option for the folder of the pages."""
    parser.getgroup("onnxsmith").addoption(
        "--onnxsmith-pages",
        dest=_FOLDER,
        metavar="FOLDER",
        default=None,
        help="folder for the pages of failed assertions of onnxsmith.testing",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Generator[None, Any, Any]:
    """Names the page of a failure after the test, while the test runs."""
    pages.current = partial(_page, item)
    try:
        return (yield)
    finally:
        pages.current = None


def _page(item: Any) -> Path | None:
    name = re.sub(r"[^\w.-]+", "-", item.nodeid).strip("-")
    folder = item.config.getoption(_FOLDER)
    if folder is None:
        cache = getattr(item.config, "cache", None)
        if cache is None:
            return None
        folder = cache.mkdir("onnxsmith")
    return Path(item.config.invocation_params.dir, folder) / f"{name}.html"  # a test may change the working folder
