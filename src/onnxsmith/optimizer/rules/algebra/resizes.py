"""Joins, removes and simplifies `Resize` and `Upsample`, which are read in every opset. `Resize` is written for opset
11 and newer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found

_SCALING = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")
"""Lists coordinate modes that keep every element in place if the scale is 1."""


REPEATS = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
"""Gives the attributes with which a Resize by integer scales repeats each element."""


def _input(node: ir.Node, index: int) -> ir.Value | None:
    """Returns an input of a node; None if it is left out or its shape is empty."""
    value = node.inputs[index] if len(node.inputs) > index else None
    return None if value is None or facts.dims(value) == (0,) else value


def _scales(node: ir.Node) -> list[float] | None:
    """Returns the scales of a Resize or Upsample, for each axis; None if they are not constant, or sizes are given."""
    attribute = node.attributes.get("scales")
    if attribute is not None:
        return None if attribute.is_ref() else list(attribute.as_floats())
    index = 1 if node.op_type == "Upsample" or facts.opset(node) < 11 else 2
    array = facts.constant(_input(node, index))
    return None if array is None else [float(scale) for scale in array.ravel()]


def _sizes(node: ir.Node) -> tuple[facts.Element, ...] | None:
    """Returns the requested sizes of a Resize, for each axis."""
    return facts.integers(_input(node, 3)) if facts.opset(node) >= 11 else None


def _is_plain(node: ir.Node) -> bool:
    """Whether a Resize has no `axes`, no aspect ratio policy, and does not crop first."""
    attributes = node.attributes
    if any(attribute.is_ref() for attribute in attributes.values()) or "axes" in attributes:
        return False
    policy, place = attributes.get("keep_aspect_ratio_policy"), attributes.get("coordinate_transformation_mode")
    if policy is not None and policy.as_string() != "stretch":
        return False
    return place is None or place.as_string() in _SCALING


def write_resize(
    tape: ir.tape.Tape, source: ir.Value | None, factors: Sequence[float], attributes: dict[str, ir.Attr], opset: int
) -> ir.Value:
    """Writes a Resize by constant scales, for opset 11 and newer."""
    scale = tape.initializer(ir.Tensor(np.array(factors, np.float32)), name="scales")
    roi = tape.initializer(ir.Tensor(np.zeros(0, np.float32)), name="roi") if opset < 13 else None
    return tape.op("Resize", [source, roi, scale], attributes)


_MOST_SCALE = 2**10
"""Limits the product of both scales. A choice: far above any upsampling, and positions stay exact in float32."""


class ResizeChain(Rule):
    """Two Resizes that repeat each element an integer number of times are one Resize, whose scales are the products.
    Repeats along one axis after another are written like this: `x.repeat_interleave(2, -1).repeat_interleave(2, -2)` in
    kornia's YUV 4:2:0 conversion and in the decoder of diffusers' Cosmos.

    Refused:
    1. The result of the first has other readers, or is a graph output.

    Modes other than `nearest` with `asymmetric` and `floor`, and scales that are not integers, are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H,W] x) => (float[N,2,A,B] y)
        <float[4] high = {1, 1, 2, 1}, float[4] wide = {1, 1, 1, 3}> {
            a = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
                (x, , high)
            y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
                (a, , wide)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H,W] x) => (float[N,2,A,B] y) <float[4] scales = {1, 1, 2, 3}> {
            y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
                (x, , scales)
        }
    """

    anchor = ("Resize",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        first = maker(node.inputs[0], node, "Resize")
        if first is None or facts.opset(node) < 11:
            return None
        one, two = _repeats(first), _repeats(node)
        if one is None or two is None or len(one) != len(two):
            return None
        factors = [a * b for a, b in zip(one, two, strict=True)]
        if max(factors) > _MOST_SCALE:
            return None
        return read_elsewhere((node, first)) or Match(node, (node, first), {"factors": factors})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        node, first = match.nodes
        opset = facts.opset(node)
        return write_resize(tape, first.inputs[0], match.found["factors"], dict(node.attributes), opset)


def _repeats(node: ir.Node) -> list[int] | None:
    """Returns how often a Resize repeats the elements along each axis; None for other Resizes."""
    said = {name: node.attributes.get(name) for name in REPEATS}
    if not _is_plain(node) or set(node.attributes) - set(said):
        return None
    words = {name: attribute.as_string() for name, attribute in said.items() if attribute is not None}
    if {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", **words} != REPEATS:
        return None
    scales = _scales(node)
    if not scales or any(scale < 1 or scale != int(scale) for scale in scales):
        return None
    return [int(scale) for scale in scales]


class ResizeNoop(PatternRule):
    """A Resize or Upsample by 1 along every axis changes nothing, and neither does a Resize to sizes that are provably
    the data's. This holds in every mode of interpolation, because each new element lies on an old element.

    Modes that take elements from elsewhere (`tf_crop_and_resize`, `tf_half_pixel_for_nn`) are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,C,H,W] x) => (float[N,C,H,W] y) {
            s = Shape(x)
            a = Resize <mode = "linear"> (x, , , s)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,C,H,W] x) => (float[N,C,H,W] y) {
            y = Relu(x)
        }
    """

    anchor = ("Resize", "Upsample")
    exactness = Exactness.BITWISE
    pattern = "either(Resize(x, ...), Upsample(x, ...))"
    replacement = "x"

    def check(self, found: Found) -> Answer:
        node = found.node
        if not _is_plain(node):
            return None
        factors = _scales(node)
        by_one = factors is not None and bool(factors) and all(factor == 1 for factor in factors)
        return {} if by_one or facts.same(_sizes(node), facts.dims(node.inputs[0])) else None


class ResizeRoi(Rule):
    """Only the mode `tf_crop_and_resize` uses the region of interest, the second input of a Resize. In other modes this
    input is removed, with the nodes that compute it. tf2onnx writes an empty region into every Resize.

    Refused:
    1. The model's opset is below 13: in opset 11 the input is required.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[1,1,2,2] x, float[8] z) => (float[1,1,4,4] y) <float[4] scales = {1, 1, 2, 2}> {
            r = Neg(z)
            y = Resize(x, r, scales)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[1,1,2,2] x, float[8] z) => (float[1,1,4,4] y) <float[4] scales = {1, 1, 2, 2}> {
            y = Resize(x, , scales)
        }
    """

    anchor = ("Resize",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        opset = facts.opset(node)
        if len(node.inputs) < 3 or node.inputs[1] is None or opset < 11 or not _is_plain(node):
            return None
        if opset < 13:
            if facts.is_constant(node.inputs[1]):
                return None
            return NoMatch(f"opset {opset} requires the input")
        return Match(node, (node,))

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        source, _, *rest = match.node.inputs
        return tape.op("Resize", [source, None, *rest], dict(match.node.attributes))


class ResizeScales(Rule):
    """Sizes that are provably integer multiples of the data's sizes, for every size, become constant scales. The result
    is the same, because runtimes divide the sizes by the data's sizes to get the scales.

    Refused:
    1. A size is not an integer multiple of the data's size. Half of an odd size, for example, has another scale than
       0.5.

    No match: constant or unknown sizes; `axes`; policies that keep the aspect ratio; the modes `tf_crop_and_resize` and
    `tf_half_pixel_for_nn`; opsets below 11, where Resize had no sizes.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H,W] x) => (float[N,2,A,B] y) <int64[4] twice = {1, 1, 2, 2}> {
            s = Shape(x)
            t = Mul(s, twice)
            y = Resize <mode = "linear"> (x, , , t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H,W] x) => (float[N,2,A,B] y) <float[4] scales = {1, 1, 2, 2}> {
            y = Resize <mode = "linear"> (x, , scales)
        }
    """

    anchor = ("Resize",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        sizes, dims = _sizes(node), facts.dims(node.inputs[0])
        if sizes is None or dims is None or not _is_plain(node) or len(sizes) != len(dims):
            return None
        if all(isinstance(size, int) for size in sizes):
            return None
        factors: list[float] = []
        for size, dim in zip(sizes, dims, strict=True):
            factor = None if dim is None else symbols.exact_quotient(size, dim)
            if not isinstance(factor, int) or factor < 1:
                return NoMatch("a size is not a whole multiple of the data's")
            factors.append(factor)
        return Match(node, (node,), {"factors": factors})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        node = match.node
        return write_resize(tape, node.inputs[0], match.found["factors"], dict(node.attributes), facts.opset(node))
