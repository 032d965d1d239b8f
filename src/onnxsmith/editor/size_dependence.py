"""Finds shapes that depend on the numbers of a tensor: the k of TopK, the sizes of Reshape, the bounds of Slice."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from onnxsmith.graph.structure import captures, walk

_ALL = frozenset(range(100))
"""Is every operand."""
_SIZING = {
    "AffineGrid": {1}, "BlackmanWindow": {0}, "CenterCropPad": {1}, "Compress": {1}, "ConstantOfShape": {0},
    "DFT": {1, 2}, "Expand": {1}, "HammingWindow": {0}, "HannWindow": {0}, "ImageDecoder": {0},
    "MaxUnpool": {2}, "MelWeightMatrix": _ALL, "NonMaxSuppression": _ALL, "NonZero": {0}, "OneHot": {1},
    "Pad": {1, 3}, "Range": _ALL, "ReduceL1": {1}, "ReduceL2": {1}, "ReduceLogSum": {1}, "ReduceLogSumExp": {1},
    "ReduceMax": {1}, "ReduceMean": {1}, "ReduceMin": {1}, "ReduceProd": {1}, "ReduceSum": {1},
    "ReduceSumSquare": {1}, "Reshape": {1}, "Resize": {1, 2, 3}, "SequenceAt": {1}, "SequenceErase": {1},
    "SequenceInsert": {2}, "Slice": {1, 2, 3, 4}, "Split": {1}, "SplitToSequence": {1}, "Squeeze": {1},
    "STFT": {1, 3}, "StringSplit": {0}, "Tile": {1, 2}, "TopK": {1}, "Unique": {0}, "Unsqueeze": {1},
    "Upsample": {1}, "If": {0}, "Loop": {0, 1},
}  # fmt: skip
"""Maps operators to the operands whose numbers determine a result's shape, by the operators' descriptions (onnx,
Operators.md)."""
_SHAPE_ONLY = frozenset({"Shape", "Size", "SequenceLength", "OptionalHasElement"})
"""Lists the operators whose numbers depend only on the shape of the operand."""


def sized_by(model: ir.Model, values: Iterable[ir.Value], reshaped: Iterable[ir.Value] = ()) -> set[ir.Value]:
    """Returns the values whose shapes may depend on the numbers of `values`, or on the shapes of the values in
    `reshaped`. Branches, bodies and functions are followed as well."""
    flow = _Flow(model, set(values), set(reshaped))
    flow.walk(model.graph)
    return flow.sized


class _Flow:
    """Follows numbers and shapes through the graph. `numbers` are the values whose numbers depend on the start, `sized`
    the values whose shapes depend on it."""

    def __init__(self, model: ir.Model, numbers: set[ir.Value], sized: set[ir.Value]) -> None:
        self._functions, self._numbers, self.sized = model.functions, numbers, sized

    def walk(self, graph: ir.Graph | ir.Function) -> None:
        for node in graph:
            if any(value in self._numbers or value in self.sized for value in captures.reads(node)):
                self._follow(node)

    def _follow(self, node: ir.Node) -> None:
        told = {at for at, value in enumerate(node.inputs) if value in self._numbers}
        sized = any(value in self.sized for value in node.inputs)
        called = self._functions.get(node.op_identifier())
        if called is not None:
            sized = self._through(list(node.inputs), called.inputs, called, called.outputs) or sized
        elif node.domain not in ("", "ai.onnx", "ai.onnx.ml"):
            sized = sized or any(_is_integer(node.inputs[at]) for at in told)  # sizes are integers
        else:
            sized = sized or bool(told & _SIZING.get(node.op_type, set()))
        for body in walk.subgraphs(node):
            sized = self._body(node, body) or sized
        if sized:
            self.sized.update(node.outputs)
        if sized or node.op_type not in _SHAPE_ONLY:
            self._numbers.update(node.outputs)

    def _body(self, node: ir.Node, body: ir.Graph) -> bool:
        """Follows a branch once, and a body until no new value enters its states. Returns whether a result's shape
        depends on the start."""
        states = list(node.inputs)[2:] if node.op_type == "Loop" else list(node.inputs)
        inputs = list(body.inputs)[2:] if node.op_type == "Loop" else list(body.inputs)
        again = True
        while again:
            sized = self._through(states, inputs, body, body.outputs)
            before = (len(self.sized), len(self._numbers))
            results = body.outputs[1:] if node.op_type == "Loop" else body.outputs
            for state, result in zip(inputs, results, strict=False):
                self._pass(result, state)
            again = (len(self.sized), len(self._numbers)) != before
        return sized or (node.op_type == "Loop" and body.outputs[0] in self._numbers)

    def _through(
        self,
        given: list[ir.Value | None],
        inputs: Iterable[ir.Value],
        inner: ir.Graph | ir.Function,
        outputs: Iterable[ir.Value],
    ) -> bool:
        for outside, inside in zip(given, inputs, strict=False):
            if outside is not None:
                self._pass(outside, inside)
        self.walk(inner)
        return any(value in self.sized for value in outputs)

    def _pass(self, source: ir.Value, target: ir.Value) -> None:
        for held in (self._numbers, self.sized):
            if source in held:
                held.add(target)


def _is_integer(value: ir.Value | None) -> bool:
    return value is not None and (value.dtype is None or value.dtype.is_integer())
