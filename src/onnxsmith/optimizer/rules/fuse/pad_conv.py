"""Zeros that are padded before a convolution are padded by it."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.optimizer.rules._padding import PadInto
from onnxsmith.optimizer.rules.base import Exactness, NoMatch


class PadConv(PadInto):
    """Conv(Pad(x)) is one Conv that pads more, where the Pad adds zeros along the axes that the window moves over. The
    amounts may be computed, as torch's exporters do it. `auto_pad` is written out: the data's size is no longer what
    it was. Other readers of the padded value stay.

    Refused:
    1. The Pad does not pad with zero, or not with a constant.
    2. Batch or channels are padded.
    3. An amount is below zero, which crops.
    4. An amount, an axis or the value that it pads with is not known.
    5. The convolution pads by `auto_pad`, and what that is depends on the data's size: strides above 1. With dilations
       above 1 runtimes do not agree on it.

    ConvTranspose, whose padding takes away, is no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,6,7] y) <float[1,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9},
        int64[8] p = {0, 0, 1, 0, 0, 0, 1, 3}> {
            a = Pad(x, p)
            y = Conv <pads = [1, 1, 1, 1]> (a, w)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,6,7] y) <float[1,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
            y = Conv <pads = [2, 1, 2, 4]> (x, w)
        }
    """

    anchor = ("Conv",)
    exactness = Exactness.REASSOCIATES

    def refusal(self, node: ir.Node, pad: ir.Node, value: float, pads: Sequence[int]) -> NoMatch | None:
        return None if value == 0 else NoMatch("it does not pad with zero", pad)
