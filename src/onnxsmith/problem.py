"""What goes wrong, told so that a person can act on it.

A `Problem` answers five questions: which kind (its id), what happened, where, why, and what to do. Every error that
leaves this package is an `OnnxsmithError` carrying one. Each id has a page under `onnxsmith/pages/`, printed by
`onnxsmith explain ID`; a test holds the ids in the source and the pages to each other.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One thing that went wrong.

    `id` is `room/kind` and never changes its meaning. `what` is one sentence. `where` is a file, a node, a tensor, an
    argument. `why` is the cause as far as it is known. `fix` is the cheapest thing that helps, ready to paste where
    that is possible.
    """

    id: str
    what: str
    where: str = ""
    why: str = ""
    fix: str = ""

    def __str__(self) -> str:
        lines = [f"{self.id}: {self.what}"]
        lines += [f"  {label}: {text}" for label, text in self.details()]
        return "\n".join(lines)

    def details(self) -> list[tuple[str, str]]:
        """The labelled lines below the first one; empty ones left out."""
        labelled = (("where", self.where), ("why", self.why), ("fix", self.fix))
        return [(label, text) for label, text in labelled if text]


class OnnxsmithError(Exception):
    """Raised for everything the caller can do something about. `problem` says what."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


def problem(id: str, what: str, *, where: str = "", why: str = "", fix: str = "") -> OnnxsmithError:  # noqa: A002
    """The error to raise for a problem: `raise problem("model/empty", "…", where=…)`."""
    return OnnxsmithError(Problem(id, what, where, why, fix))
