"""A model laid open for planting: every node and constant of it, those of subgraphs and functions too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

FLOATS = (np.float32, np.float16, np.float64)


class Open:
    """Holds the model that is changed in place. `types` are dtype and shape by tensor, where inference knows them."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.lists = [owner.node for owner in _graphs(model)]
        self.nodes = [node for nodes in self.lists for node in nodes]
        self.constants = {tensor.name: tensor for owner in _graphs(model) for tensor in _initializers(owner)}
        for node in self.nodes:
            if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
                self.constants[node.output[0]] = node.attribute[0].t
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in self.nodes:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.makers = {name: node for node in self.nodes for name in node.output}
        self.types = _types(model)

    def array(self, name: str) -> Any:
        """The values of a constant; None for any other tensor."""
        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def set(self, name: str, array: Any) -> None:
        """Gives a constant other values, of its dtype and shape."""
        tensor = self.constants[name]
        old = numpy_helper.to_array(tensor)
        changed = numpy_helper.from_array(np.asarray(array).astype(old.dtype).reshape(old.shape), tensor.name)
        tensor.CopyFrom(changed)

    def of(self, *ops: str) -> list[onnx.NodeProto]:
        """The nodes with one of these operators."""
        return [node for node in self.nodes if node.op_type in ops and node.domain in ("", "ai.onnx", "com.microsoft")]

    def insert_before(self, reader: onnx.NodeProto, *made: onnx.NodeProto) -> None:
        """Puts nodes in front of one that reads them."""
        for nodes in self.lists:
            at = next((index for index, node in enumerate(nodes) if node is reader), None)
            if at is not None:
                for offset, node in enumerate(made):
                    nodes.insert(at + offset, node)
                return

    def rank(self, name: str) -> int | None:
        """The rank of a tensor, where it is known."""
        known = self.types.get(name)
        return None if known is None or known[1] is None else len(known[1])

    def shape(self, name: str) -> tuple[int | str, ...] | None:
        """The shape of a tensor, where it is known."""
        known = self.types.get(name)
        return None if known is None else known[1]

    def dtype(self, name: str) -> int:
        """The element type of a tensor; 0 where it is not known."""
        if name in self.constants:
            return self.constants[name].data_type
        return self.types.get(name, (0, None))[0]


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    """The value of an attribute."""
    found = next((one for one in node.attribute if one.name == name), None)
    return default if found is None else onnx.helper.get_attribute_value(found)


def set_attribute(node: onnx.NodeProto, name: str, value: Any) -> None:
    """Sets or replaces an attribute."""
    kept = [one for one in node.attribute if one.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, onnx.helper.make_attribute(name, value)])


def _graphs(model: onnx.ModelProto) -> Iterator[Any]:
    waiting: list[Any] = [model.graph, *model.functions]
    while waiting:
        owner = waiting.pop(0)
        yield owner
        for node in owner.node:
            for one in node.attribute:
                waiting += [one.g] if one.type == onnx.AttributeProto.GRAPH else list(one.graphs)


def _initializers(owner: Any) -> Any:
    return owner.initializer if isinstance(owner, onnx.GraphProto) else ()


def _types(model: onnx.ModelProto) -> dict[str, tuple[int, tuple[int | str, ...] | None]]:
    try:
        inferred = onnx.shape_inference.infer_shapes(model)
    except Exception:  # noqa: BLE001 — a model too large or too odd: planters find fewer places
        inferred = model
    found: dict[str, tuple[int, tuple[int | str, ...] | None]] = {}
    for owner in _graphs(inferred):
        if isinstance(owner, onnx.GraphProto):
            for value in [*owner.value_info, *owner.input, *owner.output]:
                kind = value.type.tensor_type
                shape = None
                if kind.HasField("shape"):
                    shape = tuple(d.dim_value if d.HasField("dim_value") else d.dim_param for d in kind.shape.dim)
                found[value.name] = (kind.elem_type, shape)
    for owner in _graphs(model):
        for tensor in _initializers(owner):
            found[tensor.name] = (tensor.data_type, tuple(tensor.dims))
    return found
