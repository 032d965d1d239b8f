"""Finds the page of every problem, in `pages/`, and of every rule, in its docstring."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator
from importlib.resources import files

from onnxsmith import rooms
from onnxsmith.causes.base import recognise
from onnxsmith.problem import problem
from onnxsmith.report.base import Report, Verdict
from onnxsmith.report.parts.page import Page
from onnxsmith.rules.base import Rule

EVERYTHING = "all"
_SUGGESTED = 5
"""Ids in a suggestion. A choice: one line."""


def explain(id: str) -> Report:  # noqa: A002
    """Reports the page of a problem or a rule. For `all`: the list of all ids with their first lines. For a message of
    torch, onnx or a runtime: the problem that it means, with its page.

    Raises:
        OnnxsmithError: `explain/unknown-id` when there is no page for the id.
    """
    found = pages()
    if id == EVERYTHING:
        text = "\n".join(f"{name}: {_title(name, page)}" for name, page in found.items())
        return _report(id, text, f"{len(found)} pages")
    if id not in found:
        meant = recognise(id)
        if meant is not None:
            return Report("explain", Verdict.DONE, (Page(meant.id, found[meant.id]),), (meant,), headline=meant.what)
        kinds = [name for name in found if id and id.lower() in name]
        close = kinds[:_SUGGESTED] or difflib.get_close_matches(id, found, _SUGGESTED)
        raise problem(
            "explain/unknown-id",
            f"there is no page {id!r}",
            fix=f"did you mean {', '.join(close)}?" if close else "`onnxsmith explain all` lists every page",
        )
    return _report(id, found[id], _title(id, found[id]))


def pages() -> dict[str, str]:
    """Returns every page by id, problems first."""
    return dict(_problem_pages()) | dict(_rule_pages())


def _problem_pages() -> Iterator[tuple[str, str]]:
    for room in sorted((files("onnxsmith") / "pages").iterdir(), key=lambda item: item.name):
        if not room.is_dir():
            continue
        for page in sorted(room.iterdir(), key=lambda item: item.name):
            if page.name.endswith(".md"):
                yield f"{room.name}/{page.name.removesuffix('.md')}", page.read_text(encoding="utf-8").strip()


def _rule_pages() -> Iterator[tuple[str, str]]:
    for id_, kind in rooms.classes("onnxsmith.rules", Rule).items():
        yield id_, inspect.getdoc(kind) or ""


def _title(id_: str, page: str) -> str:
    """Returns the first line of a page, without `#` and the id."""
    first = page.partition("\n")[0].lstrip("# ")
    return first.removeprefix(f"{id_}:").strip()


def _report(id_: str, text: str, headline: str) -> Report:
    return Report("explain", Verdict.DONE, parts=(Page(id_, text),), headline=headline)
