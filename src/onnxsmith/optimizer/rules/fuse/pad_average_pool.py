"""Zeros that are padded before an average pool go into the pool."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._padding import PadInto, own_pads, pool_refusal
from onnxsmith.optimizer.rules._patterns import integer
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch


class PadAveragePool(PadInto):
    """AveragePool(Pad(x)) is one AveragePool that pads and counts its padding (`count_include_pad`), if the Pad adds
    zeros along the axes over which the window moves.

    Refused:
    1. The Pad does not pad with zero, or its mode is not `constant`.
    2. Batch or channels are padded.
    3. An amount is below zero, which crops.
    4. An amount, an axis or the padding value is not known.
    5. The pool pads, too, and does not count its padding; one pool cannot count only a part of it.
    6. `ceil_mode` is set: runtimes differ in whether elements beyond the padding count.
    7. The total padding is as wide as the window or wider, which runtimes refuse.
    8. The window has dilations above 1.
    9. The pool pads by `auto_pad` and has strides above 1: its padding then depends on the data's size.
    10. The model's opset is below 7, where a pool could not count its padding.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> {
            a = Pad(x, p)
            y = AveragePool <kernel_shape = [3, 3]> (a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y) {
            y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x)
        }
    """

    anchor = ("AveragePool",)
    exactness = Exactness.REASSOCIATES

    def refusal(self, node: ir.Node, pad: ir.Node, value: float, pads: Sequence[int]) -> NoMatch | None:
        if value != 0:
            return NoMatch("it does not pad with zero", pad)
        if facts.opset(node) < 7:
            return NoMatch("before opset 7 a pool could not count what it pads", node)
        own = own_pads(node, len(pads) // 2)
        if isinstance(own, NoMatch) or (any(own) and integer(node, "count_include_pad", 0) != 1):
            return NoMatch("the pool pads too, and does not count what it pads", node)
        return pool_refusal(node, pads)

    def written(self, match: Match) -> dict[str, list[int] | int]:
        return {"pads": match.found["pads"], "count_include_pad": 1}
