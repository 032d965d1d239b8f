"""Lowers a Constant with a number or a list instead of a tensor."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering
from onnxsmith.graph.surgery.node_insertion import Inserter


class ConstantValues(Lowering):
    """Writes the number or the list as a tensor."""

    operators: ClassVar[dict[str, int]] = {"Constant": 12}

    def lower(self, node: ir.Node, write: Inserter) -> str:
        name, attribute = next(iter(node.attributes.items()))
        if attribute.is_ref():
            return f"`{name}` refers to an attribute of the function"
        if not name.startswith("value_"):
            return ""
        kind = name.removeprefix("value_").removesuffix("s")
        if kind == "string":
            given = [attribute.value] if name == "value_string" else list(attribute.value)
            shape = [] if name == "value_string" else [len(given)]
            tensor: ir.TensorProtocol = ir.StringTensor([str(one).encode() for one in given], shape=ir.Shape(shape))
        else:
            tensor = ir.tensor(np.array(attribute.value, np.float32 if kind == "float" else np.int64))
        del node.attributes[name]
        node.attributes["value"] = ir.AttrTensor("value", tensor)
        return ""
