"""Makes a pattern from a Python function or from ONNX text with variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_parser import from_text
from onnxsmith.graph.patterns.pattern_tracing import from_function


def pattern_of(source: Callable[..., Any] | str | Pattern) -> Pattern:
    """Makes a pattern from a function of operators or from ONNX text; returns a pattern as it is.

    Raises:
        OnnxsmithError: a `pattern/…` problem that says what is wrong, and where.
    """
    if isinstance(source, Pattern):
        return source
    return from_text(source) if isinstance(source, str) else from_function(source)
