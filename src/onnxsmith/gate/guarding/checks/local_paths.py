"""The model does not tell paths of the machine that it was made on."""

from __future__ import annotations

import re
from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.base.problem import Problem
from onnxsmith.base.words import pasted, several, shortened
from onnxsmith.gate.guarding.checks.base import Check
from onnxsmith.gate.guarding.guarded_file import GuardedFile
from onnxsmith.graph.structure import walk

_LOCAL = re.compile(r"(?<![\w.:/-])/(?:home|Users)/[^\s/\"']+|(?<![\w.:/-])/root/|\b[A-Za-z]:\\+Users\\+[^\s\\\"']+")
"""Finds the home folder of a user under Linux, macOS and Windows."""
_LONGEST = 80
"""Limits the characters of a path that is shown. A choice."""


class LocalPaths(Check):
    """Doc strings and metadata name no folder below the home of a user, as traces of exporters do."""

    def problems(self, file: GuardedFile) -> Iterator[Problem]:
        if file.model is None:
            return
        found = [(kind, place, match[0]) for kind, place, text in _texts(file.model) if (match := _LOCAL.search(text))]
        if found:
            kinds = list(dict.fromkeys(kind for kind, _, _ in found))
            name, options = pasted(file.path), " ".join(f"--what {kind}" for kind in kinds)
            _, place, path = found[0]
            yield Problem(
                "guard/local-path",
                f"{several(len(found), 'text names', 'texts name')} a folder of a user",
                where=f"{file.path}{place}",
                why=f"{shortened(path, _LONGEST)}: such a text reveals who made the model, and on which machine",
                fix=f"remove these texts: `onnxsmith strip {name} -o {name} {options}`",
            )


def _texts(model: ir.Model) -> Iterator[tuple[str, str, str]]:
    """Yields the texts of a model: the kind of text, as `strip` calls it, the place, and the text."""
    yield from (("metadata", f", metadata {key!r}", value) for key, value in model.metadata_props.items())
    yield "docs", "", model.doc_string or ""
    graphs: list[ir.Graph | ir.Function] = [*walk.graphs(model), *model.functions.values()]
    for graph in graphs:
        yield "docs", f", graph {graph.name!r}", graph.doc_string or ""
        yield from (("provenance", f", graph {graph.name!r}", text) for text in graph.metadata_props.values())
    for node in walk.all_nodes(model):
        place = f", node {walk.node_label(node)!r}"
        yield "docs", place, node.doc_string or ""
        yield from (("docs", place, one.doc_string) for one in node.attributes.values() if one.doc_string)
        yield from (("provenance", place, text) for text in node.metadata_props.values())
    for value in walk.values(model):
        place = f", tensor {value.name!r}"
        yield "docs", place, value.doc_string or ""
        yield from (("provenance", place, text) for text in value.metadata_props.values())
