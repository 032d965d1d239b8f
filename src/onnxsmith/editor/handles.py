"""Provides handles for nodes and tensors of a model that is being edited: names, neighbours, values."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.shapes.dims import written
from onnxsmith.graph.structure import provenance, walk


class TensorHandle:
    """Represents a tensor: a graph input, an initializer or the result of a node."""

    __slots__ = ("value",)

    def __init__(self, value: ir.Value) -> None:
        self.value = value

    @property
    def name(self) -> str:
        """Returns the name in the file."""
        return self.value.name or ""

    @property
    def dtype(self) -> str | None:
        """Returns the dtype in lower case, `float` or `int64`; None if the dtype is unknown."""
        return self.value.dtype.name.lower() if self.value.dtype is not None else None

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """Returns a size, a name or None for each dimension. Returns None if the rank is unknown."""
        if self.value.shape is None:
            return None
        return written(self.value.shape)

    @property
    def producer(self) -> NodeHandle | None:
        """Returns the node that computes the tensor; None for an input or an initializer."""
        node = self.value.producer()
        return NodeHandle(node) if node is not None else None

    @property
    def consumers(self) -> tuple[NodeHandle, ...]:
        """Returns the nodes that read the tensor, including nodes in branches and bodies."""
        return tuple(NodeHandle(node) for node in dict.fromkeys(use.node for use in self.value.uses()))

    @property
    def constant(self) -> Any:
        """Returns the array of an initializer or of a Constant node, otherwise None."""
        tensor = const_tensor(self.value)
        return tensor.numpy() if tensor is not None else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorHandle) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        dims = "…" if self.shape is None else ", ".join("?" if dim is None else str(dim) for dim in self.shape)
        return f"<tensor {self.name}: {self.dtype or '?'}[{dims}]>"


class NodeHandle:
    """Represents a node of the model."""

    __slots__ = ("node",)

    def __init__(self, node: ir.Node) -> None:
        self.node = node

    @property
    def name(self) -> str:
        """Returns the name in the file; "" for a node without a name."""
        return self.node.name or ""

    @property
    def op(self) -> str:
        """Returns the operator, `Conv` or `com.microsoft::Gelu`."""
        return walk.op_name(self.node)

    @property
    def module(self) -> str:
        """Returns the path of the torch module from which the node came; "" if the file does not name the module."""
        return provenance.of(self.node).module or ""

    @property
    def inputs(self) -> tuple[TensorHandle | None, ...]:
        """Returns the operands in order; None for a left-out operand."""
        return tuple(TensorHandle(value) if value is not None else None for value in self.node.inputs)

    @property
    def outputs(self) -> tuple[TensorHandle, ...]:
        """Returns the results in order."""
        return tuple(TensorHandle(value) for value in self.node.outputs)

    @property
    def attributes(self) -> dict[str, Any]:
        """Returns the attributes as Python values. The step `set` changes an attribute."""
        return {name: one.value for name, one in self.node.attributes.items() if not one.is_ref()}

    @property
    def producers(self) -> tuple[NodeHandle, ...]:
        """Returns the nodes that compute the operands."""
        nodes = (value.producer() for value in self.node.inputs if value is not None)
        return tuple(NodeHandle(node) for node in dict.fromkeys(nodes) if node is not None)

    @property
    def consumers(self) -> tuple[NodeHandle, ...]:
        """Returns the nodes that read the results."""
        nodes = (use.node for value in self.node.outputs for use in value.uses())
        return tuple(NodeHandle(node) for node in dict.fromkeys(nodes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeHandle) and other.node is self.node

    def __hash__(self) -> int:
        return id(self.node)

    def __repr__(self) -> str:
        return f"<node {walk.node_label(self.node)}: {self.op}>"
