"""Makes a pattern from a Python function or from ONNX text with variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_parser import from_text
from onnxsmith.graph.patterns.pattern_tracing import from_function


def pattern_of(source: Callable[..., Any] | str | Pattern, *, is_replacement: bool = False) -> Pattern:
    """Makes a pattern from a function of operators or from ONNX text; returns a pattern as it is.

    Raises:
        OnnxsmithError: a `pattern/…` problem that says what is wrong, and where.
    """
    if isinstance(source, Pattern):
        return source
    if isinstance(source, str):
        return from_text(source, is_replacement=is_replacement)
    return from_function(source, is_replacement=is_replacement)


def replacement_of(source: Callable[..., Any] | str | Pattern) -> Pattern:
    """Makes a replacement in the same way as `pattern_of` makes a pattern. A replacement is a pattern of the nodes to
    make; its results may also be variables."""
    return pattern_of(source, is_replacement=True)
