"""Recurrent layers."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.viewer.inspection.mac_rules.base import MacRule, Products, dims_in


class Recurrent(MacRule):
    """Steps · batch · (elements of W + elements of R), over both directions.

    Source: the equations of the operators (ONNX, LSTM, GRU, RNN): each step multiplies the input with W and the state
    with R. Peepholes and gates are element-wise and not counted; `sequence_lens` may stop a run earlier.
    """

    operators = ("GRU", "LSTM", "RNN", "com.microsoft::DynamicQuantizeLSTM")

    def products(self, node: ir.Node) -> Products | None:
        data, weight, recurrence = (dims_in(node, index) for index in range(3))
        if data is None or len(data) != 3 or weight is None or recurrence is None:
            return None
        return [(*data[:2], *weight), (*data[:2], *recurrence)]
