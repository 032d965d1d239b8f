"""Short-time Fourier transforms."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import known_integers
from onnxsmith.viewer.inspection.mac_rules._cooley_tukey import transform
from onnxsmith.viewer.inspection.mac_rules.base import Dim, MacRule, Products, dims_in, dims_out, operand


class ShortTimeFourier(MacRule):
    """Frames · (the count of one transform + the window's products), for a frame length that is a number.

    Source: the fast transform of Cooley and Tukey (`_cooley_tukey.py`); operands as in ONNX, STFT.
    """

    operators = ("STFT",)

    def products(self, node: ir.Node) -> Products | None:
        out, length = dims_out(node), _length(node)
        if out is None or len(out) != 4 or not isinstance(length, int):
            return None
        return [(*out[:2], transform(length) + length * (operand(node, 2) is not None))]


def _length(node: ir.Node) -> Dim | None:
    given = known_integers.elements(operand(node, 3))
    if given:
        return given[0]
    window = dims_in(node, 2)
    return window[0] if window else None
