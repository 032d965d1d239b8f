"""Decides where `split` divides a model, and explains why `split` cannot divide it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.base.words import first_few, several
from onnxsmith.editor.node_selectors import Selecting, shown
from onnxsmith.graph.surgery import partition

_SHOWN = 3
"""Limits the tensors that a reason names. A choice: one line."""


def divided(model: ir.Model, into: int | None, tensors: list[Any], nodes: bool, by_nodes: bool) -> list[list[ir.Node]]:
    """Returns the nodes of each piece.

    Raises:
        OnnxsmithError: `split/one-piece` if the model cannot be divided as requested; errors of a selector.
    """
    if nodes:
        found = partition.inseparable(model.graph)
    elif into is not None:
        found = partition.in_ranges(model.graph, into, by_nodes=by_nodes)
    else:
        found = partition.at_tensors(model.graph, [_cut(model, one) for one in tensors])
        _refuse_lists(found, model.graph)
    if len(found) < 2:
        raise problem(
            "split/one-piece",
            f"the model would stay in {several(len(found), 'piece')}",
            why=_why_one(model, tensors),
            fix="`onnxsmith inspect MODEL --nodes` lists the nodes with their tensors",
        )
    return found


def _why_one(model: ir.Model, tensors: list[Any]) -> str:
    nodes = partition.computing(model.graph)
    if len(nodes) < 2:
        return f"it has {several(len(nodes), 'node')} besides constants"
    if tensors:
        return f"{', '.join(map(_said, tensors))} needs every node: nothing is left for a second piece"
    lists = [
        value.name or "" for node in nodes for value in node.outputs if value.uses() and not partition.may_cross(value)
    ]
    return (
        f"all nodes hang together by {first_few(lists, _SHOWN)}: pieces exchange tensors of a known number of "
        "dimensions, no lists, optionals or maps"
    )


def _cut(model: ir.Model, selector: Any) -> ir.Value:
    value = Selecting(model).tensor(selector)
    producer = value.producer()
    if producer is None or producer.graph is not model.graph:
        raise problem(
            "split/one-piece",
            f"no piece can end at {value.name!r}",
            why="it is a graph input, a weight, or inside a branch or a body",
            fix="choose a tensor that a node of the main graph computes",
        )
    return value


def _refuse_lists(divided: list[list[ir.Node]], graph: ir.Graph) -> None:
    of = {node: at for at, piece in enumerate(divided) for node in piece}
    for at, piece in enumerate(divided):
        for value in partition.reads(piece, graph):
            producer = value.producer()
            if producer is None or of.get(producer, at) == at:
                continue
            if not partition.may_cross(value):
                kind = "no tensor" if value.type is not None and value.shape is not None else "of unknown shape"
                raise problem(
                    "split/one-piece",
                    f"{value.name!r} would go from piece {of[producer]} to piece {at}, and is {kind}",
                    why="pieces exchange tensors of a known number of dimensions only: few runtimes take lists as "
                    "inputs, and the specification wants the shape of a port",
                    fix="end the piece at a tensor before it or behind it",
                )


def _said(selector: Any) -> str:
    return selector if isinstance(selector, str) else shown(selector)
