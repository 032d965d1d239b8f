"""Writes nodes that compute sizes and shapes at run time: Shape, Gather, Mul, Concat."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.editor.dims.factors import Atom, Dim
from onnxsmith.editor.edited_model import Work, graph_of
from onnxsmith.editor.node_placement import node_after
from onnxsmith.graph.structure.fresh import Names

Piece = int | tuple[Dim, int, int]
"""Is a number, or (dimension, factor, divisor): a dimension times a number, divided by a number."""


class Sizes:
    """Makes nodes that compute sizes. The size of each symbol is computed once. `infer` is called with each new
    node."""

    def __init__(self, work: Work, infer: Callable[[ir.Node], None]) -> None:
        self._work, self._infer, self._names = work, infer, Names(work.model)
        self._known: dict[Atom, ir.Value] = {}

    def constant(self, array: np.ndarray | Sequence[int], name: str = "size") -> ir.Value:
        """Adds an array as a new initializer of the main graph; lists become int64."""
        tensor = ir.tensor(array if isinstance(array, np.ndarray) else np.array(array, np.int64))
        return self.initializer(tensor, name)

    def initializer(self, tensor: ir.TensorProtocol, name: str) -> ir.Value:
        """Adds a tensor as a new initializer of the main graph."""
        value = ir.Value(name=self._names.free(name), type=ir.TensorType(tensor.dtype), const_value=tensor)
        value.shape = ir.Shape(tensor.shape.numpy())
        self._work.model.graph.initializers[value.name or ""] = value
        self._work.allow_constants()
        return value

    def node(
        self, before: ir.Node, op: str, inputs: Sequence[ir.Value | None], **attributes: int | list[int]
    ) -> ir.Value:
        """Inserts a node in front of `before` and returns its result."""
        return self._insert(graph_of(before), before, op, inputs, **attributes)

    def shape(self, pieces: Sequence[Piece], before: ir.Node) -> ir.Value:
        """Returns a list of sizes as an int64 tensor, which is a constant if all sizes are numbers."""
        if all(isinstance(piece, int) for piece in pieces):
            return self.constant([piece for piece in pieces if isinstance(piece, int)])
        parts: list[ir.Value] = []
        numbers: list[int] = []
        for piece in [*pieces, None]:
            if isinstance(piece, int):
                numbers.append(piece)
                continue
            if numbers:
                parts.append(self.constant(numbers))
                numbers = []
            if piece is not None:
                parts.append(self._piece(*piece, before))
        return parts[0] if len(parts) == 1 else self.node(before, "Concat", parts, axis=0)

    def _piece(self, dim: Dim, times: int, over: int, before: ir.Node) -> ir.Value:
        """Returns one size, as a tensor of one element."""
        times *= math.prod(factor for factor in dim if isinstance(factor, int))
        shared = math.gcd(times, over)
        times, over = times // shared, over // shared
        atoms = [self._atom(factor) for factor in dim if isinstance(factor, Atom)]
        value = atoms[0]
        for other in [*atoms[1:], *([self.constant([times])] if times != 1 else [])]:
            value = self.node(before, "Mul", [value, other])
        return value if over == 1 else self.node(before, "Div", [value, self.constant([over])])

    def _atom(self, atom: Atom) -> ir.Value:
        if atom not in self._known and atom.base is not None:
            whole = self._atom(atom.base)
            maker = whole.producer()
            assert maker is not None
            inner = graph_of(maker)
            made = self._insert(inner, node_after(inner, whole), "Div", [whole, self.constant([atom.over])])
            self._known[atom] = made
        elif atom not in self._known:
            made_by = atom.value.producer()
            home = graph_of(made_by) if made_by is not None else atom.value.graph
            assert isinstance(home, ir.Graph)
            before = node_after(home, atom.value)
            shape = self._insert(home, before, "Shape", [atom.value])
            at = self.constant([atom.axis])
            self._known[atom] = self._insert(home, before, "Gather", [shape, at], axis=0)
        return self._known[atom]

    def _insert(
        self,
        graph: ir.Graph,
        before: ir.Node | None,
        op: str,
        inputs: Sequence[ir.Value | None],
        **attributes: int | list[int],
    ) -> ir.Value:
        node = ir.node(op, list(inputs), attributes=attributes)
        node.outputs[0].name = self._names.free(f"{op.lower()}_of_size")
        if before is None:
            graph.append(node)
        else:
            graph.insert_before(before, node)
        self._infer(node)
        return node.outputs[0]
