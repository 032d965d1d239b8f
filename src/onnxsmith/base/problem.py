"""Describes an error so that its reader can act on it.

A `Problem` answers five questions: which kind (its id), what happened, where, why, and what to do. Every error that
leaves this package is an `OnnxsmithError` with a problem. Each id has a page under `onnxsmith/viewer/pages/`, which
`onnxsmith explain ID` prints; a test compares the ids in the source with the pages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Problem:
    """One error.

    `id` is `room/kind` and never changes its meaning. `what` is one sentence. `where` is a file, a node, a tensor or an
    argument. `why` is the cause, if known. `fix` is the cheapest remedy, ready to paste if possible.
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
        """Returns the labelled lines below the first one, without empty ones."""
        labelled = (("where", self.where), ("why", self.why), ("fix", self.fix))
        return [(label, text) for label, text in labelled if text]


class OnnxsmithError(Exception):
    """An error that the caller can act on. `problem` describes it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem

    def at(self, place: str, fix: str = "") -> OnnxsmithError:
        """Returns the error with `place` in front of its own place, and with one more remedy."""
        found = self.problem
        where, fixes = (part for part in (place, found.where) if part), (part for part in (found.fix, fix) if part)
        return OnnxsmithError(replace(found, where=": ".join(where), fix="; or ".join(fixes)))


def problem(id: str, what: str, *, where: str = "", why: str = "", fix: str = "") -> OnnxsmithError:  # noqa: A002
    """Makes the error to raise: `raise problem("model/empty", "…", where=…)`."""
    return OnnxsmithError(Problem(id, what, where, why, fix))
