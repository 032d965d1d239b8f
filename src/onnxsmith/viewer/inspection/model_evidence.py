"""Compares the cause of a message with the model: which helps cannot help it, and whether it has the fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.files.load import Source, load
from onnxsmith.graph.reading.scopes import nodes
from onnxsmith.graph.structure.walk import node_label
from onnxsmith.viewer.inspection.cause_matching import Help, Message

_ORDINALS = ("first", "second", "third")


@dataclass(frozen=True)
class Evidence:
    """Holds the model of a message, and the node that the message names; None if there is no such node, or several."""

    model: ir.Model
    node: ir.Node | None

    @classmethod
    def of(cls, source: Source | None, names: Mapping[str, str]) -> Evidence | None:
        """Reads the model; None without a model, and for one that cannot be read."""
        if source is None:
            return None
        try:
            model = load(source)
        except OnnxsmithError:
            return None
        found = [node for _, node in nodes(model) if _is_named(node, names.get("node", ""))]
        return cls(model, found[0] if len(found) == 1 else None)

    def helps(self, message: Message) -> tuple[Help, ...]:
        """Returns the helps without those whose condition the model does not fulfil; all of them if none is left."""
        return tuple(one for one in message.helps if self._may_help(one.when)) or message.helps

    def _may_help(self, when: str) -> bool:
        if when == "symbolic-size":
            dims = [dim for value in self.model.graph.inputs for dim in value.shape or (None,)]
            return not dims or any(not isinstance(dim, int) for dim in dims)
        if when == "computed-operand" and self.node is not None:
            operands = [value for value in self.node.inputs if value is not None]
            return any(value.producer() is not None for value in operands) or all(map(_is_stored, operands))
        return True

    def names(self, names: Mapping[str, str]) -> dict[str, str]:
        """Returns what the model adds to the names of the message: `input` if the model has one input, `operand` if an
        operand of the node is declared with the second dtype of the message."""
        found = {}
        inputs = [value for value in self.model.graph.inputs if not _is_stored(value)]
        if len(inputs) == 1:
            found["input"] = inputs[0].name or ""
        if self.node is not None and "other" in names:
            dtypes = [value.dtype if value is not None else None for value in self.node.inputs]
            at = [index for index, dtype in enumerate(dtypes) if dtype is not None and _name(dtype) == names["other"]]
            found |= {"operand": str(at[0])} if at else {}
        return found

    def notes(self, message: Message) -> Iterator[str]:
        """Yields whether the operand that the cause takes for a constant is one in the model."""
        at, node = message.constant_operand, self.node
        if at is None or node is None or at >= len(node.inputs):
            return
        value = node.inputs[at]
        if value is None:
            return
        operand = f"{value.name}, the {_ORDINALS[at]} operand of {node_label(node)},"
        if _is_stored(value):
            yield f"{operand} is a constant in this model"
        else:
            yield f"{operand} is not a constant in this model; perhaps the message is about another file"


def _is_named(node: ir.Node, name: str) -> bool:
    return bool(name) and (node.name == name or any(value.name == name for value in node.outputs))


def _name(dtype: ir.DataType) -> str:
    """Returns the dtype as messages of onnxruntime name it: float, double, int64."""
    return dtype.name.lower()


def _is_stored(value: ir.Value) -> bool:
    return const_tensor(value) is not None
