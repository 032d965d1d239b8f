"""Turns errors of torch and of the model's code into problems: `export` raises no other exception."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.exporter.factory import model_line


@contextmanager
def foreseen() -> Iterator[None]:
    """Raises every exception of the block as an OnnxsmithError."""
    try:
        yield
    except OnnxsmithError:
        raise
    except Exception as error:
        raise OnnxsmithError(unforeseen(error)) from error


def unforeseen(error: Exception) -> Problem:
    """Returns the problem for an error that has no more specific problem."""
    where = model_line(error)
    more = "`onnxsmith explain export/unforeseen` lists other ways to capture"
    return Problem(
        "export/unforeseen",
        "the export stopped with an error that onnxsmith does not know",
        where=where,
        why=f"{type(error).__name__}: {error}"[:600],  # a choice: torch's messages can fill pages
        fix=f"change {where}, the last line of the model that ran; or {more}" if where else more,
    )
