"""Finds the stored tensors of a model, and checks whether their values can be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.reading.scopes import Scope, scopes
from onnxsmith.graph.structure import walk


@dataclass(frozen=True, eq=False)
class Held:
    """A stored tensor: an initializer, or the tensor of a `Constant` node. `tensor` is None without values."""

    scope: Scope
    value: ir.Value
    constant: bool
    tensor: ir.TensorProtocol | None

    @property
    def name(self) -> str:
        """The name of the tensor's value in the graph."""
        return self.value.name or ""

    @property
    def missing(self) -> bool:
        """Whether the tensor's values are missing."""
        return self.tensor is None or not readable(self.tensor)


def held(model: ir.Model) -> Iterator[Held]:
    """Yields every stored tensor, scope by scope: initializers, then the tensors of `Constant` nodes."""
    for scope in scopes(model):
        for value in scope.graph.initializers.values():
            yield Held(scope, value, False, value.const_value)
        for node in walk.direct(scope.graph):
            if is_constant(node):
                tensor = constant(node)
                if tensor is not None:
                    yield Held(scope, node.outputs[0], True, tensor)


def is_constant(node: ir.Node) -> bool:
    """Whether the node is ONNX's `Constant`."""
    return node.op_type == "Constant" and node.domain in ("", "ai.onnx")


def constant(node: ir.Node) -> ir.TensorProtocol | None:
    """Returns the tensor of a `Constant` node; None if it is an attribute of the function's call."""
    attribute = next(iter(node.attributes.values()), None)
    if attribute is None or attribute.is_ref():
        return None
    name = node.outputs[0].name
    if attribute.name == "value_string":
        return ir.StringTensor([attribute.as_string().encode()], shape=ir.Shape([]), name=name)
    if attribute.name == "value_strings":
        texts = [text.encode() for text in attribute.as_strings()]
        return ir.StringTensor(texts, shape=ir.Shape([len(texts)]), name=name)
    return const_tensor(node.outputs[0])


def readable(tensor: ir.TensorProtocol) -> bool:
    """Whether the values can be read: from the model itself, or from a file inside the model's folder.

    For a model without a folder, given as a message, the current folder counts, as in onnx-ir. Files outside the folder
    are never read, because a location could name any file of this machine."""
    if not isinstance(tensor, ir.ExternalTensor):
        return True
    folder = os.path.realpath(os.fspath(tensor.base_dir) or os.curdir)
    target = Path(os.path.realpath(os.path.join(folder, tensor.location)))  # noqa: PTH118 — a location may be absolute
    return tensor.valid() and target.is_relative_to(folder) and target.is_file()


def place(tensor: ir.TensorProtocol | None) -> str:
    """Returns where the values are: `inline`, `external FILE`, `missing`, or `missing: FILE`."""
    if tensor is None:
        return "missing"
    if not isinstance(tensor, ir.ExternalTensor):
        return "inline"
    return f"external {tensor.location}" if readable(tensor) else f"missing: {tensor.location}"
