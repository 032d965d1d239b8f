"""Finds the node that a message names in a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Part
from onnxsmith.base.words import several
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.reading.scopes import nodes
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.viewer.inspection import lookup

_SHOWN = 3
"""Limits the nodes of one operator that are shown. A choice: each node fills ten lines or more."""
_GROUP = re.compile(r"\.\.\.| \+ ")
"""Separates the names of nodes that TensorRT fused."""


def located(source: Source, names: Mapping[str, str]) -> tuple[tuple[Part, ...], tuple[str, ...], tuple[Problem, ...]]:
    """Returns views of the named nodes and tensors, notes, and the problem if the model cannot be read.

    The model is read even if the message names nothing in it, because a fault of the file is often the cause.

    A node is looked up by its name, then as the producer of the named tensor, then by its number, then by its operator.
    """
    where = str(source) if isinstance(source, str | Path) else "the model"
    try:
        model = load(source)
    except OnnxsmithError as error:
        return (), (f"{where} could not be read, so that nothing was looked up; the reason is below",), (error.problem,)
    shaped, trouble = inferred(model)
    notes = [trouble] if trouble else []
    if not names.keys() & {"node", "tensor", "op", "layer"}:
        return (), (f"{where} can be read; the message names no node, tensor or operator", *notes), ()
    wanted = [name for key in ("node", "tensor", "layer") for name in _GROUP.split(names.get(key, "")) if name]
    parts = tuple(part for name in dict.fromkeys(wanted) for part in _called(shaped, name))
    if not parts:
        parts = tuple(_numbered(shaped, names))
    if not parts:
        of_operator = list(_of_operator(shaped, names.get("op", "")))
        parts = tuple(of_operator[:_SHOWN])
        notes += _missing(shaped, where, wanted)
        if names.get("op"):
            notes.append(
                f"{where} has {several(len(of_operator), 'node')} with operator {names['op']}; {len(parts)} shown"
            )
    return parts, tuple(notes), ()


def _called(shaped: ir.Model, name: str) -> Iterator[Part]:
    for index, (scope, node) in enumerate(nodes(shaped)):
        if node.name != name and any(value.name == name for value in node.outputs):
            yield lookup.node_view(shaped, scope, node, index)
    yield from lookup.views(shaped, name)


def _numbered(shaped: ir.Model, names: Mapping[str, str]) -> Iterator[Part]:
    """Yields the node with the number from the message, if the node's operator is the operator in the message."""
    for index, (scope, node) in enumerate(nodes(shaped)):
        if str(index) == names.get("index") and node.op_type == names.get("op"):
            yield lookup.node_view(shaped, scope, node, index)


def _of_operator(shaped: ir.Model, op: str) -> Iterator[Part]:
    kind = re.split(r"[.:]", op)[-1]
    for index, (scope, node) in enumerate(nodes(shaped)):
        if kind and node.op_type == kind:
            yield lookup.node_view(shaped, scope, node, index)


def _missing(shaped: ir.Model, where: str, wanted: list[str]) -> Iterator[str]:
    for name in wanted:
        close = lookup.similar(shaped, name)
        ending = f"; similar names: {', '.join(close)}" if close else "; runtimes name the nodes that they fuse"
        yield f"{where} has no node or tensor called {name}{ending}"
