"""Zeros that are padded before a convolution go into the convolution."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.optimizer.rules._padding import PadInto
from onnxsmith.optimizer.rules.base import Exactness, NoMatch


class PadConv(PadInto):
    """Conv(Pad(x)) is one Conv that pads more, if the Pad adds zeros along the axes over which the window moves. The
    amounts may be computed, as torch's exporters do. `auto_pad` is replaced by numbers, because the data's size
    changes. Other readers of the padded value keep it.

    Refused:
    1. The Pad does not pad with zero, or its mode is not `constant`.
    2. Batch or channels are padded.
    3. An amount is below zero, which crops.
    4. An amount, an axis or the padding value is not known.
    5. The convolution pads by `auto_pad` and has strides above 1: its padding then depends on the data's size. With
       dilations above 1, runtimes differ.

    ConvTranspose, whose padding crops, is no match.

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
