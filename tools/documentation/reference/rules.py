"""Writes a page for each folder of simplification rules, and an index."""

from __future__ import annotations

import inspect
from collections import defaultdict

from onnxsmith.base import rooms
from onnxsmith.optimizer.rules.base import Exactness, Rule
from tools.documentation.markdown import code, escaped, first_sentence, from_docstring, table
from tools.documentation.reference.problems import linked

FOLDER = "reference/rules"
_EXACTNESS = {
    Exactness.BITWISE: "changes no bit of a result",
    Exactness.VALUE: "changes no value; a zero may change its sign",
    Exactness.REASSOCIATES: "changes results by rounding",
}


def pages() -> dict[str, str]:
    """Returns the pages by their path on the site."""
    folders: dict[str, dict[str, type[Rule]]] = defaultdict(dict)
    for id_, rule in rooms.classes("onnxsmith.optimizer.rules", Rule).items():
        folders[id_.partition("/")[0]][id_] = rule
    written = {f"{FOLDER}/{folder}.md": _folder(folder, rules) for folder, rules in folders.items()}
    return {f"{FOLDER}/index.md": _index(folders), **written}


def _index(folders: dict[str, dict[str, type[Rule]]]) -> str:
    parts = [
        "# Simplification rules",
        "This page lists the rules by which `onnxsmith simplify` rewrites a model, by the first part of their id.",
        "`onnxsmith explain ID` prints the page of a rule.",
        "[`onnxsmith simplify`](../commands/simplify.md) has the options that choose rules.",
    ]
    for folder, rules in folders.items():
        rows = [
            (f"[`{id_}`]({folder}.md#{anchor(id_)})", escaped(first_sentence(inspect.getdoc(rule) or "")))
            for id_, rule in rules.items()
        ]
        parts += [f"## {folder}", table(("rule", "what it does"), rows)]
    return "\n\n".join(parts) + "\n"


def _folder(folder: str, rules: dict[str, type[Rule]]) -> str:
    parts = [
        f"# Rules: {folder}",
        f"This page lists the simplification rules whose id begins with `{folder}/`, with a model before and after.",
    ]
    for id_, rule in rules.items():
        text = from_docstring(inspect.getdoc(rule) or "")
        parts += [f"## {id_} {{ #{anchor(id_)} }}", _facts(rule), linked(text, "../problems/")]
    return "\n\n".join(parts) + "\n"


def anchor(id_: str) -> str:
    """Returns the anchor of a rule on the page of its folder."""
    return id_.partition("/")[2].replace("/", "-")


def _facts(rule: type[Rule]) -> str:
    facts = [
        f"Starts at {', '.join(map(code, rule.anchor))}",
        _EXACTNESS[rule.exactness],
        *([f"makes an operator of `{rule.domain}`, with `--contrib` only"] if rule.domain else []),
        *([f"runs for the target `{rule.target}` only, or by name"] if rule.target else []),
        *([f"needs a kernel of {code(rule.makes)} in the runtime that verifies"] if rule.makes else []),
        *([f"runs by name only, because of a measurement: {escaped(rule.slower)}"] if rule.slower else []),
    ]
    return "; ".join(facts) + "."
