"""The elements that stay along each axis that becomes shorter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from onnxsmith.model.graph.fresh import Names
from onnxsmith.precision.pruning.links import Indices, Slot


@dataclass
class Cuts:
    """The indices that stay, by tensor and axis, in order; no entry for axes that stay whole."""

    kept: Mapping[Slot, Indices]
    names: Names | None = None
    made: list[ir.Value] = field(default_factory=list)

    def of(self, value: ir.Value | None, axis: int) -> Indices | None:
        """The indices that stay along an axis, None if all do."""
        return None if value is None else self.kept.get((value.name or "", axis))

    def axes(self, value: ir.Value | None) -> dict[int, Indices]:
        """The indices that stay, by axis, of a tensor."""
        shape = None if value is None else value.shape
        found = {axis: self.of(value, axis) for axis in range(0 if shape is None else len(shape))}
        return {axis: indices for axis, indices in found.items() if indices is not None}

    def replace(self, node: ir.Node, index: int, numbers: Sequence[int]) -> None:
        """Gives a node an operand of its own: int64 numbers."""
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
