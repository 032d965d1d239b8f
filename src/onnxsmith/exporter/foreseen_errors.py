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
    return Problem(
        "export/unforeseen",
        "the export stopped with an error that no problem describes",
        where=model_line(error),
        why=f"{type(error).__name__}: {error}"[:600],  # a choice: torch's messages can fill pages
        fix="`where` is the last line of the model that ran; `onnxsmith explain export/unforeseen` lists what helps",
    )
