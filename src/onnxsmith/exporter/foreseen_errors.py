"""Errors of torch, and of the model's own code, as problems: no other exception leaves an export."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onnxsmith.problem import OnnxsmithError, Problem
from onnxsmith.sources.factory import model_line


@contextmanager
def foreseen() -> Iterator[None]:
    """Inside, an exception of any kind is raised as a problem."""
    try:
        yield
    except OnnxsmithError:
        raise
    except Exception as error:
        raise OnnxsmithError(unforeseen(error)) from error


def unforeseen(error: Exception) -> Problem:
    """The problem of an error that none describes better."""
    return Problem(
        "export/unforeseen",
        "the export stopped with an error that no problem describes",
        where=model_line(error),
        why=f"{type(error).__name__}: {error}"[:600],
        fix="the line in `where`, if there is one, is the last of the model's that ran; what helps is on the page: "
        "`onnxsmith explain export/unforeseen`",
    )
