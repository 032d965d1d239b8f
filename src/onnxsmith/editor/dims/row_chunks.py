"""Makes a copy of a model that takes any number of rows, and runs the rows of the original's size at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.structure.fresh import Names
from onnxsmith.graph.structure.model_copy import cloned

LEAST_OPSET = 13
"""Names the first opset in which Range, Mod and Slice with operands support all dtypes that networks use."""


def chunked(
    model: ir.Model, symbol: str, size: int, inputs: Mapping[str, int], outputs: Mapping[str, tuple[int, int]]
) -> ir.Model:
    """Returns a copy of `model` that takes any number of rows, `symbol`, and runs `size` rows at a time. If the last
    chunk is short, it is filled with rows from the start. The results of these rows are cut off.

    `inputs` maps each input with rows to their axis. `outputs` maps each output with rows to their axis and to the
    number of elements of each row on this axis. All other outputs are taken from the first chunk.
    """
    made = cloned(model)
    return _Chunks(made, symbol, size).wrapped(inputs, outputs)


class _Chunks:
    def __init__(self, model: ir.Model, symbol: str, size: int) -> None:
        self._model, self._graph, self._symbol, self._size = model, model.graph, symbol, size
        self._names = Names(model)

    def wrapped(self, inputs: Mapping[str, int], outputs: Mapping[str, tuple[int, int]]) -> ir.Model:
        graph = self._graph
        ports = [value for value in graph.inputs if value.name in inputs]
        results = list(graph.outputs)
        names = [value.name or "" for value in results]
        nodes = list(graph)
        graph.outputs.clear()
        rows = []
        for port in ports:
            row = ir.Value(name=self._names.free(f"{port.name}_chunk"), type=port.type, shape=port.shape)
            port.replace_all_uses_with(row)
            results = [row if one is port else one for one in results]
            rows.append(row)
        graph.remove(nodes)
        body = ir.Graph(rows, [], nodes=nodes, name=self._names.free("chunk"), opset_imports={})
        body.outputs.extend(self._own(body, value) for value in results)
        for value in body.outputs:
            value.name = self._names.free(f"{value.name}_of_chunk")
        count = self._count(ports[0], inputs[ports[0].name or ""])
        given = [self._split(port, inputs[port.name or ""], count) for port in ports]
        scan = ir.node("Scan", given, {"body": body, "num_scan_inputs": len(given)}, num_outputs=len(results))
        for value, name in zip(scan.outputs, names, strict=True):
            value.name = self._names.free(f"{name}_stack")
        graph.append(scan)
        for value, result, name in zip(scan.outputs, body.outputs, names, strict=True):
            joined = self._joined(value, result, outputs[name], count) if name in outputs else self._first(value)
            joined.name, joined.type = name, result.type
            joined.shape = self._shape(result, outputs.get(name))
            graph.outputs.append(joined)
        for port in ports:
            self._declare(port, inputs[port.name or ""])
        return self._model

    def _own(self, body: ir.Graph, value: ir.Value) -> ir.Value:
        """Returns a value that the body itself computes. This is a copy if the value is an input of the body, an outer
        value, or an output already."""
        node = value.producer()
        if node is not None and node.graph is body and value not in body.outputs:
            return value
        copy = ir.node("Identity", [value])
        body.append(copy)
        copy.outputs[0].name, copy.outputs[0].type, copy.outputs[0].shape = value.name, value.type, value.shape
        return copy.outputs[0]

    def _declare(self, port: ir.Value, axis: int) -> None:
        assert port.shape is not None
        dims = list(port.shape)
        dims[axis] = ir.SymbolicDim(self._symbol)
        port.shape = ir.Shape(dims)

    def _shape(self, result: ir.Value, place: tuple[int, int] | None) -> ir.Shape | None:
        if result.shape is None or place is None:
            return result.shape
        dims = list(result.shape)
        axis, each = place
        dims[axis] = ir.SymbolicDim(self._symbol if each == 1 else f"{each}*{self._symbol}")
        return ir.Shape(dims)

    def _count(self, port: ir.Value, axis: int) -> ir.Value:
        shape = self._node("Shape", [port])
        return self._node("Gather", [shape, self._list([axis])], axis=0)

    def _split(self, port: ir.Value, axis: int, count: ir.Value) -> ir.Value:
        """Returns the rows of an input as chunks: (chunks, …, size, …)."""
        size, none = self._list([self._size]), self._list([])
        more = self._node("Add", [count, self._list([self._size - 1])])
        chunks = self._node("Div", [more, size])
        whole = self._node("Reshape", [self._node("Mul", [chunks, size]), none])
        counted = self._node("Range", [self._scalar(0), whole, self._scalar(1)])
        # Indices past the last row wrap around: the last chunk is filled with valid rows from the start.
        picked = self._node("Gather", [port, self._node("Mod", [counted, count])], axis=axis)
        assert port.shape is not None
        rank = len(port.shape)
        sizes = self._node("Shape", [picked])  # another dimension may be symbolic
        before, after = (
            self._node("Gather", [sizes, self._list(places)], axis=0)
            for places in (list(range(axis)), list(range(axis + 1, rank)))
        )
        target = self._node("Concat", [before, chunks, size, after], axis=0)
        # Without allowzero (before opset 14) a 0 in the target copies the input's size.
        parted = self._node("Reshape", [picked, target], allowzero=1) if self._zeros else self._reshape(picked, target)
        order = [axis, *range(axis), *range(axis + 1, rank + 1)]
        return parted if axis == 0 else self._node("Transpose", [parted], perm=order)

    @property
    def _zeros(self) -> bool:
        return self._model.opset_imports.get("", 1) >= 14

    def _reshape(self, value: ir.Value, target: ir.Value) -> ir.Value:
        return self._node("Reshape", [value, target])

    def _joined(self, stack: ir.Value, result: ir.Value, place: tuple[int, int], count: ir.Value) -> ir.Value:
        """Returns the rows of all chunks, without the rows that fill the last chunk."""
        axis, each = place
        assert result.shape is not None
        rank = len(result.shape)
        order = [*range(1, axis + 1), 0, *range(axis + 1, rank + 1)]
        moved = stack if axis == 0 else self._node("Transpose", [stack], perm=order)
        # The file may declare symbolic sizes of an output, so they are read from the stack.
        sizes = self._node("Shape", [stack])
        chunks = self._node("Gather", [sizes, self._list([0])], axis=0)
        joint = self._node("Mul", [chunks, self._node("Gather", [sizes, self._list([axis + 1])], axis=0)])
        before, after = (
            self._node("Gather", [sizes, self._list(places)], axis=0)
            for places in (list(range(1, axis + 1)), list(range(axis + 2, rank + 1)))
        )
        target = self._node("Concat", [before, joint, after], axis=0)
        whole = self._node("Reshape", [moved, target], allowzero=1) if self._zeros else self._reshape(moved, target)
        end = count if each == 1 else self._node("Mul", [count, self._list([each])])
        return self._node("Slice", [whole, self._list([0]), end, self._list([axis])])

    def _first(self, stack: ir.Value) -> ir.Value:
        return self._node("Gather", [stack, self._scalar(0)], axis=0)

    def _list(self, numbers: Sequence[int]) -> ir.Value:
        return self._constant(np.array(numbers, np.int64))

    def _scalar(self, number: int) -> ir.Value:
        return self._constant(np.array(number, np.int64))

    def _constant(self, array: np.ndarray) -> ir.Value:
        value = ir.Value(name=self._names.free("chunk_size"), const_value=ir.tensor(array))
        value.type, value.shape = ir.TensorType(ir.DataType.INT64), ir.Shape(array.shape)
        self._graph.initializers[value.name or ""] = value
        return value

    def _node(self, op: str, inputs: Sequence[ir.Value], **attributes: int | list[int]) -> ir.Value:
        node = ir.node(op, inputs, attributes)
        node.outputs[0].name = self._names.free(f"chunk_{op.lower()}")
        self._graph.append(node)
        return node.outputs[0]
