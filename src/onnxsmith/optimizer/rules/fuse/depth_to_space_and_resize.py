"""Fuses moved blocks of channels and repeated elements, which `Reshape`, `Transpose` and `Expand` write out."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._layout import perm_of
from onnxsmith.optimizer.rules._patterns import FLOATS, maker, read_elsewhere, too_old
from onnxsmith.optimizer.rules._views import KnownDims, first_order, known_dims, viewed
from onnxsmith.optimizer.rules.algebra.resizes import REPEATS, write_resize
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_FORMS: dict[tuple[int, ...], tuple[str, str]] = {
    (0, 3, 4, 1, 5, 2): ("DepthToSpace", "DCR"),
    (0, 1, 4, 2, 5, 3): ("DepthToSpace", "CRD"),
    (0, 3, 5, 1, 2, 4): ("SpaceToDepth", ""),
}
"""Maps permutations of the six axes to operator and mode. SpaceToDepth makes the rows and columns of blocks the first
channels."""


class DepthToSpace(Rule):
    """Reshape, Transpose, Reshape are DepthToSpace if they move blocks of channels into rows and columns. The blocks
    are first among the channels (mode DCR) or last (CRD, torch's pixel_shuffle). They are SpaceToDepth if they move
    rows and columns of blocks into the first channels. Rows and columns may be dynamic if they cannot be empty (after a
    Conv) or the last Reshape has `allowzero`; otherwise a 0 in its target would copy another dimension.

    Refused:
    1. An intermediate result has other readers, or is a graph output.
    2. The dtype is not known to be float16, float or double.
    3. The model's opset is below 11, which introduced the modes of DepthToSpace.

    Blocks that are not squares of a known size, and other permutations (torch's pixel_unshuffle has the blocks last),
    are no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,8,H,W] x) => (float[N,2,A,B] y)
        <int64[2] blocks = {2, 2}, int64[2] k = {2, 2}, int64[1] c = {2}> {
            n = Shape <start = 0, end = 1> (x)
            s = Shape <start = 2> (x)
            t = Concat <axis = 0> (n, c, blocks, s)
            a = Reshape(x, t)
            b = Transpose <perm = [0, 1, 4, 2, 5, 3]> (a)
            m = Mul(s, k)
            u = Concat <axis = 0> (n, c, m)
            y = Reshape <allowzero = 1> (b, u)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,8,H,W] x) => (float[N,2,A,B] y) {
            y = DepthToSpace <blocksize = 2, mode = "CRD"> (x)
        }
    """

    anchor = ("Reshape",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        transpose = maker(node.inputs[0], node, "Transpose")
        perm = perm_of(transpose) if transpose is not None else None
        form = _FORMS.get(perm) if perm is not None else None
        first = maker(transpose.inputs[0], node, "Reshape") if transpose is not None and form is not None else None
        if transpose is None or form is None or first is None or first.inputs[0] is None:
            return None
        source, middle, last = (known_dims(v) for v in (first.inputs[0], first.outputs[0], node.outputs[0]))
        if source is None or middle is None or last is None or len(source) != 4 or len(middle) != 6:
            return None
        op_type, mode = form
        block = _block(op_type, mode, source, middle, last)
        if block is None:
            return None
        if first.inputs[0].dtype not in FLOATS:
            return NoMatch("the dtype is not known to be floating point", first.inputs[0])
        refusal = too_old(node, f"{op_type} with modes", 11) or read_elsewhere((node, transpose, first))
        found = {"op_type": op_type, "block": block, "mode": mode, "source": first.inputs[0]}
        return refusal or Match(node, (node, transpose, first), found)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        found = match.found
        attributes = {"blocksize": found["block"], **({"mode": found["mode"]} if found["mode"] else {})}
        return tape.op(found["op_type"], [found["source"]], attributes)


def _block(op_type: str, mode: str, source: KnownDims, middle: KnownDims, last: KnownDims) -> int | None:
    """Returns the size of the blocks if the shapes before, between and after the Reshapes fit the operator, else
    None."""
    block = middle[2] if mode == "CRD" else middle[1] if mode == "DCR" else middle[3]
    if not isinstance(block, int) or block < 1:
        return None
    n, c, h, w = source
    wide: tuple[facts.Element | None, ...]
    if op_type == "SpaceToDepth":
        h, w = last[2], last[3]
        wide = (n, c, symbols.multiply(h, block), symbols.multiply(w, block))
        found = facts.same(wide, source) and facts.same(middle, (n, c, h, block, w, block))
        return block if found and last[:2] == (n, symbols.multiply(c, block * block)) else None
    depth = symbols.exact_quotient(c, block * block)
    inner = (n, depth, block, block, h, w) if mode == "CRD" else (n, block, block, depth, h, w)
    wide = (n, depth, symbols.multiply(h, block), symbols.multiply(w, block))
    return block if facts.same(middle, inner) and facts.same(last, wide) else None


_RESIZED_DTYPES = (ir.DataType.FLOAT, ir.DataType.INT32, ir.DataType.UINT8, ir.DataType.INT8)


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
        factors = _repeats(view, expand, dims)
        if factors is None or factors[:2] != [1, 1]:
            return None
        repeated = [axis for axis, factor in enumerate(factors) if factor != 1]
        if not repeated or (len(repeated) == 1 and isinstance(dims[repeated[0]], int)):
            return None
        wanted = [symbols.multiply(dim, factor) for dim, factor in zip(dims, factors, strict=True)]
        if not facts.same(wanted, facts.dims(node.outputs[0])):
            return None
        if source.dtype not in _RESIZED_DTYPES:
            return NoMatch("runtimes have no Resize for this dtype", source)
        refusal = too_old(node, "Resize with a nearest_mode", 11) or read_elsewhere((node, expand, view))
        return refusal or Match(node, (node, expand, view), {"source": source, "factors": factors})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        attributes = {name: ir.AttrString(name, value) for name, value in REPEATS.items()}
        opset = facts.opset(match.node)
        return write_resize(tape, match.found["source"], match.found["factors"], attributes, opset)


def _repeats(view: ir.Node, expand: ir.Node, dims: KnownDims) -> list[int] | None:
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
