"""Elements that are repeated by `Expand` along several axes are a `Resize`."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.optimizer.rules import _resizes, _views
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere, too_old
from onnxsmith.optimizer.rules._unit_dimensions import Dims, first_order, known_dims, viewed
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_DTYPES = (ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.UINT8, ir.DataType.INT8)


class ExpandResize(Rule):
    """A view adds an axis of 1 after several axes of an image, an Expand (or Tile) repeats along the new axes, and a
    Reshape merges each new axis with the axis before it. This repeats every element of these axes, as a
    nearest-neighbour Resize by integer scales does. Exporters write upsampling like this.

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. The model's opset is below 11, where Resize did not define the nearest element.
    3. The dtype is not known to be float, int32, uint8 or int8, for which runtimes have a Resize.

    A single axis of known size is left to algebra/expand-gather. No match: repeated batch or channels, factors that are
    not numbers, axes that are added before the axis with which they merge, and unknown shapes.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H,W] x) => (float[N,2,A,B] y)
        <int64[2] axes = {3, 5}, int64[6] twice = {1, 1, 1, 2, 1, 3}, int64[4] k = {1, 1, 2, 3}> {
            a = Unsqueeze(x, axes)
            b = Expand(a, twice)
            s = Shape(x)
            t = Mul(s, k)
            y = Reshape <allowzero = 1> (b, t)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,2,H,W] x) => (float[N,2,A,B] y) <float[4] scales = {1, 1, 2, 3}> {
            y = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
                (x, , scales)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        expand = maker(node.inputs[0], node, "Expand", "Tile")
        view = maker(expand.inputs[0], node, *_views.VIEWS) if expand is not None else None
        source = view.inputs[0] if view is not None else None
        dims = known_dims(source)
        if expand is None or view is None or source is None or dims is None or len(dims) < 3:
            return None
        factors = _factors(view, expand, dims)
        if factors is None or factors[:2] != [1, 1]:
            return None
        repeated = [axis for axis, factor in enumerate(factors) if factor != 1]
        if not repeated or (len(repeated) == 1 and isinstance(dims[repeated[0]], int)):
            return None
        wanted = [symbols.multiply(dim, factor) for dim, factor in zip(dims, factors, strict=True)]
        if not facts.same(wanted, facts.dims(node.outputs[0])):
            return None
        if source.dtype not in _DTYPES:
            return NoMatch("the dtype is none that Resize runs for", source)
        refusal = too_old(node, "Resize with a nearest_mode", 11) or read_elsewhere((node, expand, view))
        return refusal or Match(node, (node, expand, view), {"source": source, "factors": factors})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        attributes = {name: ir.AttrString(name, value) for name, value in _resizes.REPEATS.items()}
        opset = facts.opset(match.node)
        return _resizes.write(tape, match.found["source"], match.found["factors"], attributes, opset)


def _factors(view: ir.Node, expand: ir.Node, dims: Dims) -> list[int] | None:
    """Returns the repeats of the elements of each axis, if only axes of size 1 directly after it are expanded."""
    order, before, after = viewed(view, first_order(dims)), known_dims(view.outputs[0]), known_dims(expand.outputs[0])
    if order is None or before is None or after is None or len(before) != len(after):
        return None
    factors = [1] * len(dims)
    at = -1
    for axis, one, many in zip(order, before, after, strict=True):
        if axis is not None:
            at = axis
        if one == many:
            continue
        if axis is not None or at < 0 or one != 1 or not isinstance(many, int) or many < 1:
            return None
        factors[at] *= many
    return factors
