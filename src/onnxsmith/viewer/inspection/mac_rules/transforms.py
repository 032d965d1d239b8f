"""Counts the multiply-accumulates of Fourier transforms."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import known_integers
from onnxsmith.viewer.inspection.mac_rules.base import Dim, MacRule, Products, dims_in, dims_out, operand


def transform(length: int) -> int:
    """Returns the real multiply-accumulates of one complex transform: 4 · N · (r₁ + … + rₘ), for N = r₁ · … · rₘ.

    Source: J. W. Cooley, J. W. Tukey, "An Algorithm for the Machine Calculation of Complex Fourier Series" (1965): N ·
    (r₁ + … + rₘ) operations, each a complex multiplication and addition, which are four real ones. A prime length has
    the N² operations of the definition. Real input counts the same as complex input.
    """
    rest, factor, total = length, 2, 0
    while factor * factor <= rest:
        while rest % factor == 0:
            rest, total = rest // factor, total + factor
        factor += 1
    return 4 * length * (total + (rest if rest > 1 else 0))


class Fourier(MacRule):
    """Counts transforms · the count of one transform, whose length must be a number.

    Source: the fast transform of Cooley and Tukey (`transform`); operands and axes as in ONNX, DFT.
    """

    operators = ("DFT",)

    def products(self, node: ir.Node) -> Products | None:
        data, axis = dims_in(node, 0), _axis(node)
        if data is None or axis is None or not -len(data) <= axis < len(data):
            return None
        given = known_integers.elements(operand(node, 1))
        length = data[axis] if operand(node, 1) is None else given[0] if given else None
        if not isinstance(length, int):
            return None
        others = [dim for index, dim in enumerate(data[:-1]) if index != axis % len(data)]
        return [(*others, transform(length))]


def _axis(node: ir.Node) -> int | None:
    """Returns the transformed axis; None if the axis is not a constant, or if the opset that decides it is unknown."""
    if "axis" in node.attributes:
        return node.attributes.get_int("axis", 1)
    if operand(node, 2) is not None:
        found = known_integers.elements(operand(node, 2))
        return found[0] if found and isinstance(found[0], int) else None
    data = dims_in(node, 0)
    if data is not None and len(data) == 3:
        return 1  # the default of every opset: 1 before opset 20, -2 since
    version = node.version or (node.graph.opset_imports.get("") if isinstance(node.graph, ir.Graph) else None)
    return None if version is None else 1 if version < 20 else -2


class ShortTimeFourier(MacRule):
    """Counts frames · (the count of one transform + the window's products), for a frame length that is a number.

    Source: the fast transform of Cooley and Tukey (`transform`); operands as in ONNX, STFT.
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
