"""Records which elements of which axes form one channel.

An element is an index along an axis of a tensor. Operators tie elements of their inputs, weights and outputs: tied
elements can only be removed together. An axis is live if it comes from the output channels of a weight; all other axes
keep their size. A pin is a reason to keep elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.structure import walk
from onnxsmith.graph.structure.fresh import Names

Slot = tuple[str, int]
"""A tensor by name, and an axis of it, counted from the front."""
Indices = npt.NDArray[np.int64]
Sizes = tuple[int, ...]


@dataclass
class Links:
    """The ties of one graph. If a reshape divides an axis, `views` says which of the parts holds the channels, by the
    sizes before and after (`reshape_axes`). Without an entry it is the outermost part."""

    views: Mapping[tuple[Sizes, Sizes], int] = field(default_factory=dict)
    slots: dict[Slot, int] = field(default_factory=dict)
    """The size of each tied axis."""
    live: set[Slot] = field(default_factory=set)
    opened: dict[Slot, str] = field(default_factory=dict)
    """Axes of results that begin with a weight's output channels, with the label of the node."""
    products: dict[Slot, str] = field(default_factory=dict)
    """Axes of weights over which a node sums, with the label of the node. A channel whose elements are zero there is
    not read."""
    read: dict[Slot, list[Slot]] = field(default_factory=dict)
    """By the axes of `products`: the axes of computed tensors that are multiplied with them."""
    ties: list[tuple[Slot, Indices, Slot, Indices]] = field(default_factory=list)
    pins: list[tuple[Slot, str]] = field(default_factory=list)
    divided: dict[tuple[Sizes, Sizes], int] = field(default_factory=dict)
    """The divisions of live axes that can be followed in several ways, with the number of ways."""
    readers: dict[Slot, set[int]] = field(default_factory=dict)
    twins: tuple[tuple[str, str], ...] = ()
    """Pairs of matrices of which one is the transpose of the other: a weight that a module uses both plain and
    transposed."""
    node: ir.Node | None = None

    @property
    def label(self) -> str:
        """Returns the label of the current node."""
        return "the graph" if self.node is None else f"{self.node.op_type} {walk.node_label(self.node)!r}"

    def is_live(self, value: ir.Value | None, axis: int) -> bool:
        """Whether channels may be removed along this axis."""
        return value is not None and (value.name or "", axis) in self.live

    def live_axes(self, value: ir.Value | None) -> list[int]:
        """Returns the live axes of a tensor."""
        rank = 0 if value is None or value.shape is None else len(value.shape)
        return [axis for axis in range(rank) if self.is_live(value, axis)]

    def open(self, value: ir.Value, axis: int) -> None:
        """Makes an axis live: the node's output channels."""
        slot = self._slot(value, axis)
        assert self.node is not None
        self.opened[slot] = walk.node_label(self.node)
        self.live.add(slot)

    def tie(
        self, a: ir.Value, axis: int, b: ir.Value, other: int, at: Indices | None = None, to: Indices | None = None
    ) -> None:
        """Ties elements `at` of an axis of `a` to the elements `to` of an axis of `b`; all of them by default, in
        order. The axis of `b` becomes live if `b` is computed."""
        sizes = static(a, axis), static(b, other)
        first = np.arange(sizes[0] or 0) if at is None else at
        second = np.arange(sizes[1] or 0) if to is None else to
        if None in sizes or len(first) != len(second):
            for value, place, size in ((a, axis, sizes[0]), (b, other, sizes[1])):
                if size is not None:
                    self.pin(value, place, f"a shape after {self.label} is not known")
            return
        one, two = self._slot(a, axis), self._slot(b, other)
        self.ties.append((one, first, two, second))
        if not is_weight(b):
            self.live.add(two)

    def pass_by(self, value: ir.Value, axis: int) -> None:
        """Notes that the node needs no change when elements of a live axis are removed."""
        self._slot(value, axis)

    def pin(self, value: ir.Value, axis: int, reason: str) -> None:
        """Keeps all channels along a live axis."""
        slot = self._slot(value, axis)
        self.pins.append((slot, reason))

    def sums(self, value: ir.Value, at: int, weight: ir.Value, axis: int) -> None:
        """Notes that the node multiplies axis `at` of a computed tensor with this axis of a weight, and sums over
        both."""
        assert self.node is not None
        slot = self._slot(weight, axis)
        self.products[slot] = walk.node_label(self.node)
        self.read.setdefault(slot, []).append(self._slot(value, at))

    def _slot(self, value: ir.Value, axis: int) -> Slot:
        slot = (value.name or "", axis)
        size = static(value, axis)
        assert size is not None, f"the size of {slot} is not known"
        self.slots.setdefault(slot, size)
        if self.node is not None:
            self.readers.setdefault(slot, set()).add(id(self.node))
        return slot


def static(value: ir.Value | None, axis: int) -> int | None:
    """Returns the size of an axis; None if it is unknown before a run."""
    if value is None or value.shape is None:
        return None
    size = value.shape[axis] if -len(value.shape) <= axis < len(value.shape) else None
    return size if isinstance(size, int) else None


def rank(value: ir.Value | None) -> int | None:
    """Returns the number of axes; None if it is unknown."""
    return None if value is None or value.shape is None else len(value.shape)


def is_weight(value: ir.Value | None) -> bool:
    """Whether the tensor is stored in the model and is no graph input."""
    return value is not None and value.is_initializer() and value.const_value is not None and not value.is_graph_input()


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
