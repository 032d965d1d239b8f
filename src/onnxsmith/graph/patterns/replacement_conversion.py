"""Makes a replacement of what a person writes. A replacement is a pattern that says which nodes to make, so a result
of it may also be a variable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnxsmith.graph.patterns.pattern import Pattern
from onnxsmith.graph.patterns.pattern_parser import from_text
from onnxsmith.graph.patterns.pattern_tracing import from_function


def replacement_of(source: Callable[..., Any] | str | Pattern) -> Pattern:
    """Makes a replacement of a function of operators, of ONNX text, or returns one as it is.

    Raises:
        OnnxsmithError: a `pattern/…` problem that says what is wrong, and where.
    """
    if isinstance(source, Pattern):
        return source
    if isinstance(source, str):
        return from_text(source, is_replacement=True)
    return from_function(source, is_replacement=True)
