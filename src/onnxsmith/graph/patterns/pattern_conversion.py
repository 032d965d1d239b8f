"""Makes a pattern of what a person writes: a Python function or ONNX text with variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_parser import from_text
from onnxsmith.graph.patterns.pattern_tracing import from_function


def pattern_of(source: Callable[..., Any] | str | Pattern) -> Pattern:
    """Makes a pattern of a function of operators, of ONNX text, or returns a pattern as it is.

    Raises:
        OnnxsmithError: a `pattern/…` problem that says what is wrong, and where.
    """
    if isinstance(source, Pattern):
        return source
    return from_text(source) if isinstance(source, str) else from_function(source)
