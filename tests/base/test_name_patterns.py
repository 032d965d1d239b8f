"""Names are matched with patterns in a bounded time."""

from __future__ import annotations

import re
from pathlib import Path

import onnxsmith
from onnxsmith.base import name_patterns


def test_patterns() -> None:
    names = ["a/b", "a/c", "b[0]"]
    assert name_patterns.fitting(names, "a/*") == ["a/b", "a/c"]
    assert name_patterns.fitting(names, "b[0]") == ["b[0]"]  # the name, although it reads as a pattern
    assert name_patterns.fitting(names, "?") == []


def test_a_long_text_is_only_a_name() -> None:
    """As a pattern, this one would take an hour."""
    text = "[" * 200_000
    assert name_patterns.fits(text, text)
    assert not name_patterns.fits("a", text)


def test_no_other_module_matches_patterns() -> None:
    package = Path(onnxsmith.__file__).parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if re.search(r"^\s*(import|from) fnmatch", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert found == {"base/name_patterns.py"}
