"""Lowers axes counted from the end, which opset 11 introduced for most operators."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.surgery.lowerings.base import Lowering, rank
from onnxsmith.graph.surgery.node_insertion import Inserter

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


class NegativeAxes(Lowering):
    """Counts the axes from the start."""

    operators: ClassVar[dict[str, int]] = {
        **{f"Reduce{name}": 11 for name in _REDUCTIONS},
        **dict.fromkeys(
            ("ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Gather", "Hardmax", "LogSoftmax", "OneHot",
             "Softmax", "Split", "Squeeze", "TopK", "Unsqueeze"), 11
        ),
    }  # fmt: skip

    def lower(self, node: ir.Node, write: Inserter) -> str:
        name = "axes" if "axes" in node.attributes else "axis"
        attribute = node.attributes.get(name)
        if attribute is None or attribute.is_ref():
            return "" if attribute is None else f"`{name}` refers to an attribute of the function"
        given = [int(one) for one in (attribute.value if name == "axes" else [attribute.value])]
        if min(given, default=0) >= 0:
            return ""
        dims = rank(node.inputs[0])
        if dims is None:
            return f"{name} {min(given)} is counted from the end, and the number of dimensions is unknown"
        dims += {"Unsqueeze": len(given), "OneHot": 1}.get(node.op_type, 0)
        counted = [axis % dims for axis in given]
        node.attributes[name] = ir.convenience.convert_attribute(name, counted if name == "axes" else counted[0])
        return ""
