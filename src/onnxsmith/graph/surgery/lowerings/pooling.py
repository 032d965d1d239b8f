"""Pooling, written as older opsets have it."""

from __future__ import annotations

from typing import ClassVar

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.graph.surgery.lowerings.base import Lowering
from onnxsmith.graph.surgery.node_insertion import Inserter


class LastWindow(Lowering):
    """Lowers a pooling with `ceil_mode` whose last window would start on the padding. Opset 22 leaves that window out,
    and the sizes of opset 21 count it.

    Writes the sizes without `ceil_mode`, if that leaves out no other window.
    """

    operators: ClassVar[dict[str, int]] = {"MaxPool": 22, "AveragePool": 22}
    reads = ("ceil_mode", "auto_pad", "kernel_shape", "strides", "pads", "dilations")

    def lower(self, node: ir.Node, write: Inserter) -> str:
        shape = facts.dims(node.inputs[0])
        if not node.attributes.get_int("ceil_mode", 0) or shape is None:
            return ""
        if node.attributes.get_string("auto_pad", "NOTSET") != "NOTSET":
            return ""
        found = [_windows(node, axis, size) for axis, size in enumerate(shape[2:]) if isinstance(size, int)]
        if not any(left_out for left_out, _ in found):
            return ""
        if len(found) < len(shape) - 2 or any(partial and not left_out for left_out, partial in found):
            return (
                "on some axes, but not on all, the last window starts in the padding, and opset 22 leaves such "
                "windows out"
            )
        node.attributes.pop("ceil_mode")
        return ""


def _windows(node: ir.Node, axis: int, size: int) -> tuple[bool, bool]:
    """Returns whether the last window of an axis starts on the padding, and whether it reaches over the end."""

    def number(name: str, at: int, default: int) -> int:
        given = node.attributes.get_ints(name)
        return given[at] if given else default

    kernel, stride = number("kernel_shape", axis, 1), number("strides", axis, 1)
    rank = len(node.attributes.get_ints("kernel_shape") or ())
    begin, end = number("pads", axis, 0), number("pads", axis + rank, 0)
    room = size + begin + end - (kernel - 1) * number("dilations", axis, 1) - 1
    last = -(-room // stride)
    return last * stride >= size + begin, room % stride != 0
