"""Recognises the warnings of torch.jit.trace.

Compared with torch 2.11 to 2.14. If the class is gone, no line is reported."""

from __future__ import annotations

from typing import Any

from onnxsmith.base.seams.base import private

REACHES = ("torch.jit._trace:TracerWarning",)


def is_of_trace(category: Any) -> bool:
    """Whether a warning class is one of torch.jit.trace."""
    kind = private(REACHES[0])
    return kind is not None and issubclass(category, kind)
