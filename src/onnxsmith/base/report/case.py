"""Describes one question about a model and its answer, for forms of a report that list cases as tests."""

from __future__ import annotations

from dataclasses import dataclass

from onnxsmith.base.report.verdict import Verdict


@dataclass(frozen=True)
class Case:
    """A question about a model, and its answer.

    `name` is the model as the report calls it, `file` its path. `question` says what was asked, such as `interface`.
    Without a `verdict` nothing was measured. `what` are sentences on what is wrong, `rules` are the ids of the problems
    that explain it.
    """

    name: str
    file: str
    question: str
    verdict: Verdict | None
    what: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
