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


# Makes a replacement from a Python function or from ONNX text. A replacement is a pattern of the nodes to make; its
# results may also be variables.


def replacement_of(source: Callable[..., Any] | str | Pattern) -> Pattern:
    """Makes a replacement from a function of operators or from ONNX text; returns a pattern as it is.

    Raises:
        OnnxsmithError: a `pattern/…` problem that says what is wrong, and where.
    """
    if isinstance(source, Pattern):
        return source
    if isinstance(source, str):
        return from_text(source, is_replacement=True)
    return from_function(source, is_replacement=True)
