"""Finds operands of edited nodes, and places for new nodes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx_ir as ir

from onnxsmith.base.problem import problem
from onnxsmith.editor.edited_model import Work, graph_of
from onnxsmith.editor.handles import TensorHandle
from onnxsmith.graph.operators import constant_tensors
from onnxsmith.graph.operators.operator_methods import Operators
from onnxsmith.graph.structure import schema, tensor_paths, versions, walk

OTHER_OPSET = "convert the model first: `onnxsmith opset MODEL {} -o converted.onnx`, or the step opset"
"""Is the fix if a new operator needs another opset. The number of the opset completes the text."""


def home_of(work: Work, value: ir.Value) -> ir.Graph:
    """Returns the graph that computes a value or has it as input."""
    node = value.producer()
    if node is not None:
        return graph_of(node)
    found: ir.Graph | ir.Function | None = value.graph
    if isinstance(found, ir.Function):
        return found.graph
    return found if found is not None else work.model.graph


def operators(work: Work, graph: ir.Graph, before: ir.Node | None, where: str, reads: Iterable[ir.Value]) -> Operators:
    """Returns a maker of nodes in `graph`, before a node or at the end. The nodes may read the tensors `reads`."""
    work.know(reads)
    import_operators(work.model)
    return Operators(work.model, graph, before, blame=lambda: where, other_opset=OTHER_OPSET)


def import_operators(model: ir.Model) -> None:
    """Imports ONNX's own operators into a model that only imports ai.onnx.ml. Their opset is the newest opset of the
    model's IR version."""
    if "" not in model.opset_imports and "ai.onnx" not in model.opset_imports:
        model.opset_imports[""] = versions.newest_opset(model.ir_version or 0)


def operand_index(work: Work, node: ir.Node, which: int | str) -> int:
    """Returns the position of an operand, given by its number or by its name in the schema.

    Raises:
        OnnxsmithError: `edit/no-operand` if the node has no such operand.
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
    """Returns the tensor that a text names, or a new constant of the dtype that the node's operand has or needs."""
    if given is None or (isinstance(given, str) and not given):
        return None
    if isinstance(given, str | TensorHandle | ir.Value | dict):
        value = work.find.tensor(given)
        refuse_unreadable(work, node, value)
        return value
    old = node.inputs[index] if index < len(node.inputs) else None
    work.know(value for value in node.inputs if value is not None)
    make = operators(work, graph_of(node), node, walk.node_label(node), ())
    if not constant_tensors.is_python(given):
        return make.constant(given).value
    dtype = old.dtype if old is not None else None
    return make.constant(given, dtype or _usual_dtype(work, node, index)).value


def _usual_dtype(work: Work, node: ir.Node, index: int) -> ir.DataType | None:
    """Returns the dtype that an operand needs: the dtype of an operand with the same type variable, or the only allowed
    dtype."""
    known = schema.find(node.op_type, node.domain, work.opsets(node).get(node.domain, 1))
    formal = known.input(index) if known is not None else None
    if known is None or formal is None:
        return None
    for other, value in enumerate(node.inputs):
        parameter = known.input(other)
        if value is not None and parameter is not None and parameter.type == formal.type and value.dtype is not None:
            return value.dtype
    return ir.DataType.INT64 if formal.types == {"tensor(int64)"} else None


def refuse_unreadable(work: Work, node: ir.Node, value: ir.Value) -> None:
    """Raises if `node` cannot read `value`, because the value belongs to a body that does not contain `node`.

    Raises:
        OnnxsmithError: `edit/out-of-scope` in this case.
    """
    if any(graph is home_of(work, value) for graph in walk.around(work.model, graph_of(node))):
        return
    raise problem(
        "edit/out-of-scope",
        f"{walk.node_label(node)} cannot read {value.name!r}",
        why="the tensor is computed inside a branch, a body or a function, but the node is outside of it",
        fix="expose the tensor there first, or choose a tensor of the same graph",
    )


def node_after(graph: ir.Graph, value: ir.Value) -> ir.Node | None:
    """Returns the first node before which a reader of `value` can stand: the node after its producer, or the first node
    of the graph."""
    made_by = value.producer()
    if made_by is None or made_by.graph is None:
        return graph[0] if len(graph) else None
    nodes = iter(graph)
    for node in nodes:
        if node is made_by:
            return next(nodes, None)
    return None


def readers(value: ir.Value) -> list[tuple[ir.Node, int]]:
    """Returns the operands that currently read a value: nodes and operand numbers."""
    return [(use.node, use.idx) for use in value.uses()]


def port(ports: list[ir.Value], selector: Any) -> ir.Value:
    """Returns the graph input or output among `ports` that a name or a handle means.

    Raises:
        OnnxsmithError: `edit/no-match` if there is none.
    """
    if isinstance(selector, TensorHandle | ir.Value):
        wanted = selector if isinstance(selector, ir.Value) else selector.value
        found = [value for value in ports if value is wanted]
        name = wanted.name or ""
    else:
        name = str(selector)
        found = [value for value in ports if value.name == name]
    if found:
        return found[0]
    names = [value.name or "" for value in ports]
    near = tensor_paths.near(name, names)
    raise problem(
        "edit/no-match",
        f"the model has no graph input or output named {name!r}",
        why=f"the model has {', '.join(names) or 'none'}",
        fix=f"write {(near or names)[0]!r}" if names else "leave the step out",
    )
