"""Finds the page of a problem (in `viewer/pages/`) or a rule (its docstring), and the cause of an error message."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from onnxsmith.base import rooms
from onnxsmith.base.near_names import near_names
from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.explanations import Advice, MessageCause, Page
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.words import shortened
from onnxsmith.exporter.causes.base import recognise
from onnxsmith.graph.files.load import Source
from onnxsmith.graph.model_identity import identifies
from onnxsmith.graph.structure import schema
from onnxsmith.optimizer.rules.base import Rule
from onnxsmith.viewer.inspection import cause_matching
from onnxsmith.viewer.inspection.cause_matching import filled, known, page
from onnxsmith.viewer.inspection.model_evidence import Evidence
from onnxsmith.viewer.problem_pages import page_title, problem_pages

EVERYTHING = "all"
_SUGGESTED = 5
"""Limits the ids in a suggestion. A choice: one line."""


_MATCHED = 300
"""Limits the shown characters of the recognised part of a message. A choice: a few lines."""
_ONLY_THE_PLACE = "this part of the message says where the tool stopped; the words around it give the reason"
_CAUSES = 3
"""Limits the causes that are shown. A choice: a long log may hold several errors, and the most specific match comes
first."""


@identifies("model")
def explain(id: str, model: Source | None = None) -> Report:  # noqa: A002
    """Reports the page of a problem or a rule. For `all`, lists all ids with their first lines.

    For an error message of a checker, runtime, converter or exporter, reports its cause, the names in it, and what
    helps. The message may be a whole traceback. With `model`, the node, tensor or operator that the message names is
    looked up in the model; nothing is run.

    Raises:
        OnnxsmithError: `explain/nothing-given` for an empty text, `explain/unknown-id` when there is no page for the
            id, `explain/unknown-message` when no known cause matches the message.
    """
    found = pages()
    if id == EVERYTHING:
        text = "\n".join(f"{name}: {page_title(name, page_)}" for name, page_ in found.items())
        return _report(id, text, f"{len(found)} pages")
    if not id.strip():
        raise problem(
            "explain/nothing-given",
            "there is no message and no id to explain",
            fix="paste the message in quotes, or give a log: `onnxsmith explain - < log.txt`; "
            "`onnxsmith explain all` lists every page",
        )
    if id in found:
        return _report(id, found[id], page_title(id, found[id]))
    meant, matches = recognise(id), cause_matching.match(id)
    if meant is None and not matches:
        raise _unknown(id, found)
    shown = [one for one in matches if one is matches[0] or not one.message.general][:_CAUSES]
    evidence = Evidence.of(model, matches[0].names if matches else {})
    parts: list[Part] = [_cause(one, model, evidence) for one in shown]
    parts += [Page(meant.id, found[meant.id])] if meant else []
    report = Report(
        "explain",
        Verdict.DONE,
        tuple(parts),
        (meant,) if meant else (),
        headline=matches[0].what if matches else meant.what if meant else "",
        notes=(
            *((_ONLY_THE_PLACE,) if matches and matches[0].message.general and not meant else ()),
            *(note for one in shown if evidence is not None for note in evidence.notes(one.message)),
        ),
    )
    return report if model is None else _with_node(report, model, matches[0].names if matches else {})


def _cause(found: cause_matching.Found, model: Source | None, evidence: Evidence | None) -> MessageCause:
    message = found.message
    helps = message.helps if evidence is None else evidence.helps(message)
    shown = shortened(found.text, _MATCHED)
    names = {**_opset(found.names), **(evidence.names(found.names) if evidence is not None else {}), **found.names}
    path = str(model) if isinstance(model, str | Path) else "model.onnx"
    return MessageCause(
        message.id,
        message.tool,
        found.what,
        message.why,
        found.names,
        shown,
        tuple(Advice(one.say, one.command(names, path)) for one in helps),
        message.links,
    )


def _opset(names: dict[str, str]) -> dict[str, str]:
    """Returns the opset nearest to the newest form of the operator in which it has the attribute of the message: the
    last one of an attribute that is gone, the first one of an attribute that is still there."""
    found = schema.opsets_with(names.get("op", ""), names.get("attribute", ""))
    if not found:
        return {}
    return {"opset": str(min(found) if max(found) == schema.domains()[""] else max(found))}


def _with_node(report: Report, model: Source, names: dict[str, str]) -> Report:
    from onnxsmith.viewer.inspection.lookup import located

    parts, notes, problems = located(model, names)
    return replace(
        report, parts=(*report.parts, *parts), notes=(*report.notes, *notes), problems=(*report.problems, *problems)
    )


def _unknown(text: str, found: dict[str, str]) -> OnnxsmithError:
    if len(text.split()) > 1:
        causes = list(cause_matching.nearest(text))
        near = "; ".join(f"{one.id} ({filled(one.what, {})})" for one in causes)
        return problem(
            "explain/unknown-message",
            f"this message is unknown: none of the {len(known())} known causes matches it",
            why="onnxsmith names a cause only if the message contains its whole pattern",
            fix=f"pages with similar words, which may describe another cause: {near}; `onnxsmith explain "
            f"{causes[0].id}` prints the first of them"
            if near
            else "paste also the lines before the message, or the whole traceback: `onnxsmith explain - < log.txt`",
        )
    kinds = [name for name in found if text and text.lower() in name]
    close = kinds[:_SUGGESTED] or near_names(text, found, _SUGGESTED)
    return problem(
        "explain/unknown-id",
        f"there is no page {text!r}",
        fix=f"did you mean {', '.join(close)}?" if close else "`onnxsmith explain all` lists every page",
    )


def pages() -> dict[str, str]:
    """Returns every page by id: of problems, of rules, of error messages."""
    return dict(problem_pages()) | dict(_rule_pages()) | {id_: page(message) for id_, message in known().items()}


def _rule_pages() -> Iterator[tuple[str, str]]:
    for id_, kind in rooms.classes("onnxsmith.optimizer.rules", Rule).items():
        yield id_, inspect.getdoc(kind) or ""


def _report(id_: str, text: str, headline: str) -> Report:
    return Report("explain", Verdict.DONE, parts=(Page(id_, text),), headline=headline)
