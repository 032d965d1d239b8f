"""Says which elements stay along each axis that becomes shorter, and adapts operands that hold sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure.fresh import Names
from onnxsmith.precision.pruning.channel_links import Indices, Slot


@dataclass
class Cuts:
    """The indices that stay, in order, by tensor and axis. Axes that stay whole have no entry."""

    kept: Mapping[Slot, Indices]
    names: Names | None = None
    made: list[ir.Value] = field(default_factory=list)

    def of(self, value: ir.Value | None, axis: int) -> Indices | None:
        """Returns the indices that stay along an axis; None if all stay."""
        return None if value is None else self.kept.get((value.name or "", axis))

    def axes(self, value: ir.Value | None) -> dict[int, Indices]:
        """Returns the indices that stay along each shortened axis of a tensor."""
        shape = None if value is None else value.shape
        found = {axis: self.of(value, axis) for axis in range(0 if shape is None else len(shape))}
        return {axis: indices for axis, indices in found.items() if indices is not None}

    def resize(self, node: ir.Node, index: int, changes: Mapping[int, int]) -> None:
        """Changes elements, by position, of an operand that holds sizes. If the operand is computed, its other elements
        stay computed."""
        value, array = node.inputs[index], facts.constant(node.inputs[index])
        if not changes:
            return
        if array is not None:
            self.replace(node, index, [changes.get(at, int(size)) for at, size in enumerate(array.ravel())])
            return
        assert value is not None
        assert node.graph is not None
        assert value.shape is not None
        count = value.shape[0]
        assert isinstance(count, int)
        chosen = self._chosen(value, count, changes, f"{node.outputs[0].name}_sizes")
        node.graph.insert_before(node, chosen)
        node.replace_input_with(index, chosen.outputs[0])

    def restore(self, node: ir.Node, elements: Mapping[int, int]) -> None:
        """Gives all readers of a vector of sizes the given numbers at some positions."""
        value = node.outputs[0]
        uses = list(value.uses())
        assert node.graph is not None
        assert value.shape is not None
        count = value.shape[0]
        assert isinstance(count, int)
        chosen = self._chosen(value, count, elements, f"{value.name}_before")
        node.graph.insert_after(node, chosen)
        for use in uses:
            use.node.replace_input_with(use.idx, chosen.outputs[0])

    def _chosen(self, value: ir.Value, count: int, numbers: Mapping[int, int], wish: str) -> ir.Node:
        """Makes a node that takes some elements from `numbers` and the others from a vector."""
        assert self.names is not None
        mask = np.array([at in numbers for at in range(count)])
        other = np.array([numbers.get(at, 0) for at in range(count)], np.int64)
        stored = []
        for array, name in ((mask, f"{wish}_mask"), (other, f"{wish}_new")):
            tensor = ir.tensor(array, name=self.names.free(name))
            made = ir.Value(name=tensor.name, const_value=tensor, shape=ir.Shape(array.shape),
                            type=ir.TensorType(tensor.dtype))  # fmt: skip
            node = value.producer()
            graph = value.graph if node is None else node.graph
            assert graph is not None
            graph.initializers[made.name or ""] = made
            stored.append(made)
        result = ir.Value(name=self.names.free(wish), type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([count]))
        return ir.Node("", "Where", [*stored, value], outputs=[result], name=self.names.free(f"{wish}_where"))

    def replace(self, node: ir.Node, index: int, numbers: Sequence[int]) -> None:
        """Replaces an operand of a node by a new constant of int64 numbers."""
        assert self.names is not None
        assert node.graph is not None
        wish = f"{node.outputs[0].name}_{node.op_type.lower()}_sizes"
        array = np.asarray(numbers, np.int64)
        tensor = ir.tensor(array)
        value = ir.Value(name=self.names.free(wish), const_value=tensor, shape=ir.Shape(array.shape),
                         type=ir.TensorType(ir.DataType.INT64))  # fmt: skip
        tensor.name = value.name
        graph = node.graph
        graph.initializers[value.name or ""] = value
        while len(node.inputs) <= index:
            node.resize_inputs(index + 1)
        node.replace_input_with(index, value)
        self.made.append(value)
