"""Describes an error that no problem of its own describes."""

from __future__ import annotations

import traceback

from onnxsmith.base import limits
from onnxsmith.base.problem import OnnxsmithError, Problem


def problem_of(error: Exception, stopped: str) -> Problem:
    """Returns the problem of any error. `stopped` is what the error stopped: `the command`."""
    if isinstance(error, OnnxsmithError):
        return error.problem
    limit = limits.problem_of(error)
    if limit is not None:
        return limit
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return Problem(
        "internal/unexpected",
        f"an unexpected error stopped {stopped}",
        where=f"{frame.filename}:{frame.lineno}, in {frame.name}",
        why=f"{type(error).__name__}: {error}",
        fix=f"this is a bug in onnxsmith: report it with {stopped} and, if you can, the model",
    )
