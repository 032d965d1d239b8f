"""Operands of edited nodes, and places for new nodes."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxsmith.editing.handles import TensorHandle
from onnxsmith.editing.work import Work
from onnxsmith.model.graph import schema, tensor_paths, walk
from onnxsmith.operators import constants
from onnxsmith.operators.operators import Operators
from onnxsmith.problem import problem


def graph_of(work: Work, value: ir.Value) -> ir.Graph:
    """The graph in which a value is made, or whose input it is."""
    node = value.producer()
    found = node.graph if node is not None else value.graph
    inner = found.graph if isinstance(found, ir.Function) else found
    return inner if inner is not None else work.model.graph


def operators(work: Work, graph: ir.Graph, before: ir.Node | None, where: str) -> Operators:
    """Makes nodes in `graph` before a node, or at the end."""
    work.infer()
    return Operators(work.model, graph, before, blame=lambda: where)


def operand_index(work: Work, node: ir.Node, which: int | str) -> int:
    """The position of an operand that is given by its number or by its name in the schema.

    Raises:
        OnnxsmithError: `edit/no-operand`.
    """
    known = schema.find(node.op_type, node.domain, work.opsets(node).get(node.domain, 1))
    if isinstance(which, int) and not isinstance(which, bool):
        inside = known is None or known.input(which) is not None
        if which >= 0 and (inside or which < len(node.inputs)):
            return which
    else:
        for index in range(len(known.inputs) if known is not None else 0):
            if known is not None and known.inputs[index].name == which:
                return index
    names = [one.name for one in known.inputs] if known is not None else []
    raise problem(
        "edit/no-operand",
        f"{node.op_type} has no operand {which!r}",
        where=walk.node_label(node),
        why=f"its operands are {', '.join(names)}" if names else f"it reads {len(node.inputs)} operands",
        fix=f"write a number from 0, or one of {', '.join(names)}" if names else "write a number from 0",
    )


def operand(work: Work, node: ir.Node, index: int, given: Any) -> ir.Value | None:
    """The tensor that a text names, or a new constant of the dtype that the node's operand has or needs."""
    if given is None or (isinstance(given, str) and not given):
        return None
    if isinstance(given, str | TensorHandle | ir.Value | dict):
        value = work.find.tensor(given)
        refuse_unreadable(work, node, value)
        return value
    graph = node.graph.graph if isinstance(node.graph, ir.Function) else node.graph
    assert graph is not None
    old = node.inputs[index] if index < len(node.inputs) else None
    work.infer()
    make = operators(work, graph, node, walk.node_label(node))
    dtype = old.dtype if old is not None else None
    if dtype is None and constants.is_python(given):
        known = schema.find(node.op_type, node.domain, work.opsets(node).get(node.domain, 1))
        formal = known.input(index) if known is not None else None
        mates = [one for i, one in enumerate(node.inputs) if one is not None and known is not None and formal is not None
                 and (other := known.input(i)) is not None and other.type == formal.type]
        dtype = mates[0].dtype if mates else ir.DataType.INT64 if formal is not None and formal.types == {"tensor(int64)"} else None
    return make.constant(given, dtype if constants.is_python(given) else None).value


def refuse_unreadable(work: Work, node: ir.Node, value: ir.Value) -> None:
    """Raises if `node` cannot read `value`: it is made in a body that `node` is not in.

    Raises:
        OnnxsmithError: `edit/out-of-scope`.
    """
    home, graph = graph_of(work, value), node.graph
    seen: ir.Graph | ir.Function | None = graph
    while seen is not None:
        inner = seen.graph if isinstance(seen, ir.Function) else seen
        if inner is home:
            return
        parent = inner.parent_node
        seen = parent.graph if parent is not None else None
    raise problem(
        "edit/out-of-scope",
        f"{walk.node_label(node)} cannot read {value.name!r}",
        why="the tensor is made inside a branch, a body or a function that the node is not part of",
        fix="expose the tensor there first, or choose a tensor of the same graph",
    )


def node_after(graph: ir.Graph, value: ir.Value) -> ir.Node | None:
    """The node before which a reader of `value` can stand: the one after its producer, or the first."""
    made_by = value.producer()
    if made_by is None or made_by.graph is None:
        return graph[0] if len(graph) else None
    nodes = iter(graph)
    for node in nodes:
        if node is made_by:
            return next(nodes, None)
    return None


def readers(value: ir.Value) -> list[tuple[ir.Node, int]]:
    """The operands that read a value now."""
    return [(use.node, use.idx) for use in value.uses()]


def names_of(work: Work) -> list[str]:
    """The names of all tensors."""
    return [place.name for place in tensor_paths.places(work.model)]
