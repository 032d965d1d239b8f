"""A `Pad` before a max pool goes into the pool, if the padding can never be the largest value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.optimizer.rules._padding import PadInto, own_pads, pool_refusal
from onnxsmith.optimizer.rules._ranges import not_negative
from onnxsmith.optimizer.rules.base import Exactness, NoMatch


class PadMaxPool(PadInto):
    """MaxPool(Pad(x)) is one MaxPool that pads, if the Pad adds -∞, which is never the largest, or adds zeros to values
    that are not negative, such as a Relu's result: each window holds an element of x, which is at least 0. ONNX does
    not define MaxPool for NaN, and runtimes differ, with and without the Pad.

    Refused:
    1. The Pad adds another number, or adds zeros to values that may be negative. The lowest number of the dtype is
       refused, too, because x may hold -∞.
    2. Batch or channels are padded, or the Pad's mode is not `constant`.
    3. An amount is below zero, which crops.
    4. An amount, an axis or the padding value is not known.
    5. Zeros are padded and the pool pads, too: a window of padding only would change.
    6. `ceil_mode` is set: a last window that begins in the padding is left out.
    7. The total padding is as wide as the window or wider, which runtimes refuse.
    8. The window has dilations above 1.
    9. The positions of the maxima (`Indices`) are read: they count the padding.
    10. The pool pads by `auto_pad` and has strides above 1: its padding then depends on the data's size.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> {
            r = Relu(x)
            a = Pad(r, p)
            y = MaxPool <kernel_shape = [3, 3]> (a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y) {
            r = Relu(x)
            y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (r)
        }
    """

    anchor = ("MaxPool",)
    exactness = Exactness.VALUE

    def refusal(self, node: ir.Node, pad: ir.Node, value: float, pads: Sequence[int]) -> NoMatch | None:
        if any(output.uses() or output.is_graph_output() for output in node.outputs[1:]):
            return NoMatch("the places of the largest are read, which count the padding", node)
        if value != -math.inf and not (value == 0 and not_negative(pad.inputs[0])):
            return NoMatch("what it pads could be the largest", pad)
        own = own_pads(node, len(pads) // 2)
        if isinstance(own, NoMatch) or (any(own) and value == 0):
            return NoMatch("the pool pads too, and not with zero", node)
        return pool_refusal(node, pads)
