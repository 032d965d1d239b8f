"""Describes an error so that its reader can act on it.

A `Problem` answers five questions: which kind (its id), what happened, where, why, and what to do. Every error that
leaves this package is an `OnnxsmithError` with a problem. Each id has a page under `onnxsmith/viewer/pages/`, which
`onnxsmith explain ID` prints; a test compares the ids in the source with the pages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from onnxsmith.base.printable import below, one_line, printable
from onnxsmith.base.remedies import Remedy, remedies
from onnxsmith.base.short_traceback import user_lines

_WHOLE = "  the whole traceback: import traceback; traceback.print_last()"
"""Names the function of Python that prints the last traceback: IPython keeps it."""


@dataclass(frozen=True)
class Problem:
    """One error.

    `id` is `room/kind` and never changes its meaning. `what` is one sentence. `where` is a file, a node, a tensor or an
    argument. `why` is the cause, if known. `fix` is the cheapest remedy, ready to paste if possible; `remedies` has its
    alternatives as data. `tried` holds the texts of the remedies that were carried out, and that helped.
    """

    id: str
    what: str
    where: str = ""
    why: str = ""
    fix: str = ""
    tried: tuple[str, ...] = ()

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """Returns the alternatives of the fix: commands, options, code, or words."""
        return remedies(self.fix, self.tried)

    def __str__(self) -> str:
        lines = [f"{self.id}: {one_line(self.what)}", *(f"  {label}: {text}" for label, text in self.details())]
        return printable("\n".join(lines))

    def details(self) -> list[tuple[str, str]]:
        """Returns the labelled lines below the first one, without empty ones. The label of a fix says whether it was
        tried, if it can be pasted."""
        labelled = (("where", one_line(self.where)), ("why", below(self.why)), (self._fix_label(), _on_lines(self.fix)))
        return [(label, text) for label, text in labelled if text]

    def _fix_label(self) -> str:
        pasted = [one for one in self.remedies if one.kind != "words"]
        tried = [one.text for one in pasted if one.tried]
        if not pasted:
            return "fix"
        if tried and len(tried) < len(pasted):
            return f"fix (tried: {', '.join(tried)})"
        return "fix (tried)" if tried else "fix (not tried)"


def _on_lines(text: str) -> str:
    """Returns a text of several lines so that each line starts below the label."""
    return "\n" + text if "\n" in text and not text.startswith("\n") else text


class OnnxsmithError(Exception):
    """An error that the caller can act on. `problem` describes it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem

    def _render_traceback_(self) -> list[str]:
        """Returns the lines that IPython and notebooks show of the error: the problem, the lines of the user, and how
        to get the whole traceback."""
        first, *details = str(self.problem).splitlines()
        called = [f"  in {line}" for line in user_lines(self)]
        return [f"\x1b[1;31m{first}\x1b[0m", *details, *called, _WHOLE]

    def at(self, place: str, fix: str = "") -> OnnxsmithError:
        """Returns the error with `place` in front of its own place, and with one more remedy."""
        found = self.problem
        where, fixes = (part for part in (place, found.where) if part), (part for part in (found.fix, fix) if part)
        return OnnxsmithError(replace(found, where=": ".join(where), fix="; or ".join(fixes)))


def problem(id: str, what: str, *, where: str = "", why: str = "", fix: str = "") -> OnnxsmithError:  # noqa: A002
    """Makes the error to raise: `raise problem("model/empty", "…", where=…)`."""
    return OnnxsmithError(Problem(id, what, where, why, fix))
