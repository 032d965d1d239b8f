"""Corrects the shape rules for If and Loop, where onnx-shape-inference assumes too much, and finds the shapes of a
loop's states.

If the shape of one branch is unknown, the engine gives an If the shape of the other branch. It assumes that a loop runs
at least once, runs to its limit, and keeps the shape of its state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir

from onnxsmith.base.seams.shape_engine import bind_scan
from onnxsmith.graph.shapes.known_integers import runs_to_its_limit

Infer = Callable[[Any, ir.Node], None]


def branch(infer: Infer) -> Infer:
    """Makes the shape of a result unknown if it is unknown in one branch; the engine would take the other branch's
    shape."""

    def careful(context: Any, node: ir.Node) -> None:
        infer(context, node)
        branches = [node.attributes[name].as_graph() for name in ("then_branch", "else_branch")]
        for value, *results in zip(node.outputs, *(branch.outputs for branch in branches), strict=True):
            if any(result.shape is None for result in results):
                value.shape = None

    return careful


def loop(infer: Infer) -> Infer:
    """Allows for loops that never run, so that the result is the initial state, and for loops that their condition ends
    early. The engine ignores both. The engine requires a condition, which the standard makes optional; a missing
    condition counts as true."""

    def careful(context: Any, node: ir.Node) -> None:
        with _conditioned(node):
            infer(context, node)
        body = node.attributes["body"].as_graph()
        states = len(node.inputs) - 2
        for index, (value, result) in enumerate(zip(node.outputs, body.outputs[1:], strict=True)):
            if index < states:
                start = node.inputs[2 + index]
                value.shape = _either(context, None if start is None else start.shape, result.shape)
            elif value.shape is not None and not runs_to_its_limit(node, body):
                value.shape = ir.Shape([context.new_symbolic_dim(), *list(value.shape)[1:]])

    return careful


@contextmanager
def _conditioned(node: ir.Node) -> Iterator[None]:
    """Gives a loop without a condition a true condition inside the block."""
    if len(node.inputs) < 2 or node.inputs[1] is not None:
        yield
        return
    node.replace_input_with(1, ir.Value(type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([])))
    try:
        yield
    finally:
        node.replace_input_with(1, None)


def _either(context: Any, a: ir.Shape | None, b: ir.Shape | None) -> ir.Shape | None:
    """Returns the shape of a value that may have either shape, with a new name on each axis where the two differ."""
    if a is None or b is None or len(a) != len(b):
        return None
    return ir.Shape([x if x == y else context.new_symbolic_dim() for x, y in zip(a, b, strict=True)])


def enter_bodies(context: Any, node: ir.Node) -> None:
    """Replaces the engine's function of this name. The state of a Loop has the dtype of its initial value, and may
    change its shape. The state of a Scan may not change its shape."""
    if node.domain:
        return
    if node.op_type == "Scan":
        bind_scan(context, node)
    body = node.attributes.get("body") if node.op_type == "Loop" else None
    if body is None or body.is_ref():
        return
    for start, value in zip(node.inputs[2:], body.as_graph().inputs[2:], strict=False):
        if start is not None and start.dtype is not None and value.dtype is None:
            context.set_dtype(value, start.dtype)


class LoopStates:
    """The states of all loops of one model. They start with the initial shapes; each dimension that an iteration
    changes is loosened. `context` is the engine's context, which makes new symbols."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._entered: set[ir.Value] = set()
        self._loose: set[str] = set()

    def enter(self, node: ir.Node, body: ir.Graph) -> None:
        """Gives a loop's state the shape of its initial value; `loosen` checks whether the state keeps that shape."""
        for start, value in zip(node.inputs[2:], body.inputs[2:], strict=False):
            if start is not None and start.shape is not None and value not in self._entered:
                self._entered.add(value)
                value.shape = self._context.name_anonymous_dims_in_shape(start.shape)

    def loosen(self, body: ir.Graph) -> bool:
        """Gives each dimension that an iteration changes a new name, which stands for its size in the current
        iteration. Returns whether there were any."""
        loosened = False
        for value, result in zip(body.inputs[2:], body.outputs[1:], strict=False):
            before, after = value.shape, result.shape
            if before is None:
                continue
            if after is None or len(after) != len(before):
                value.shape, loosened = None, True
                continue
            dims = [
                b if b == a or (isinstance(b, ir.SymbolicDim) and b.value in self._loose) else self._loose_dim()
                for b, a in zip(before, after, strict=True)
            ]
            if dims != list(before):
                value.shape, loosened = ir.Shape(dims), True
        return loosened

    def _loose_dim(self) -> ir.SymbolicDim:
        dim: ir.SymbolicDim = self._context.new_symbolic_dim()
        self._loose.add(dim.value or "")
        return dim
