"""Finds the shapes of a loop's states: starts with the initial shapes, and loosens each dimension that an iteration
changes."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir


class LoopStates:
    """The states of all loops of one model. `context` is the engine's context, which makes new symbols."""

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
