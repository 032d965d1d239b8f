"""Assertions for tests: a model exports, two ways to compute give the same answers, a model is not worse than recorded.

Each raises an `AssertionError` whose text fits on one screen. With pytest, the plugin of this package also writes the
report as a page, and names the page in the text. Nothing is imported before an assertion is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxsmith.testing.assertions import assert_exports, assert_not_worse, assert_same

__all__ = ["assert_exports", "assert_not_worse", "assert_same"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.assertions"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
