"""Defines `strip`, which removes texts that no runtime needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.words import several
from onnxsmith.editor.edited_model import Work
from onnxsmith.editor.steps.base import Step
from onnxsmith.graph.structure import walk

KINDS = ("docs", "provenance", "metadata", "shapes")


@dataclass(frozen=True)
class Strip(Step):
    """Removes `what`, one or several of: docs (doc strings), provenance (the origin of nodes: metadata of nodes and
    values), metadata (of the model), shapes (declared shapes of intermediate tensors). The outputs keep their
    numbers."""

    first = ("what",)

    what: str | list[str] | tuple[str, ...] = ("docs", "provenance")

    def apply(self, work: Work) -> str:
        kinds = [self.what] if isinstance(self.what, str) else list(self.what)
        wrong = [kind for kind in kinds if kind not in KINDS]
        if wrong or not kinds:
            raise problem(
                "edit/step-argument",
                f"strip cannot remove {', '.join(map(repr, wrong)) or 'nothing'}",
                why=f"it removes {', '.join(KINDS)}",
                fix=f'write what = "{KINDS[0]}"',
            )
        return ", ".join(several(_REMOVE[kind](work.model), _NOUNS[kind]) for kind in kinds)


def _docs(model: ir.Model) -> int:
    count = 0
    holders: list[Any] = [
        model,
        *walk.graphs(model),
        *model.functions.values(),
        *walk.all_nodes(model),
        *walk.values(model),
    ]
    for one in holders:
        if one.doc_string:
            one.doc_string, count = None, count + 1
    for node in walk.all_nodes(model):
        for attribute in node.attributes.values():
            if attribute.doc_string:
                attribute.doc_string, count = None, count + 1
    return count


def _provenance(model: ir.Model) -> int:
    holders: list[Any] = [*walk.all_nodes(model), *walk.values(model), *walk.graphs(model)]
    return sum(_cleared(one.metadata_props) for one in holders)


def _metadata(model: ir.Model) -> int:
    return _cleared(model.metadata_props)


def _cleared(texts: dict[str, str]) -> int:
    count = len(texts)
    texts.clear()
    return count


def _shapes(model: ir.Model) -> int:
    count = 0
    kept = {value for graph in walk.graphs(model) for value in (*graph.inputs, *graph.outputs)}
    for node in walk.all_nodes(model):
        for value in node.outputs:
            if value not in kept and value.shape is not None and isinstance(value.type, ir.TensorType):
                value.shape, value.type, count = None, None, count + 1
    for graph in walk.graphs(model):
        for value in graph.initializers.values():
            if value not in kept and value.type is not None and value.const_value is not None:
                value.shape, value.type, count = None, None, count + 1
    return count


_NOUNS = {
    "docs": "doc string",
    "provenance": "provenance text",
    "metadata": "metadata text",
    "shapes": "declared shape",
}
_REMOVE = {"docs": _docs, "provenance": _provenance, "metadata": _metadata, "shapes": _shapes}
