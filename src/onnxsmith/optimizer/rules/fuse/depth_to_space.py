"""Channels that are moved into blocks of an image, and back."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts, symbols
from onnxsmith.optimizer.rules._layout import perm_of
from onnxsmith.optimizer.rules._patterns import FLOATS, maker, read_elsewhere, too_old
from onnxsmith.optimizer.rules._unit_dimensions import Dims, known_dims
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_FORMS: dict[tuple[int, ...], tuple[str, str]] = {
    (0, 3, 4, 1, 5, 2): ("DepthToSpace", "DCR"),
    (0, 1, 4, 2, 5, 3): ("DepthToSpace", "CRD"),
    (0, 3, 5, 1, 2, 4): ("SpaceToDepth", ""),
}
"""Permutations of the six axes, with operator and mode. SpaceToDepth makes the rows and columns of blocks the first
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


def _block(op_type: str, mode: str, source: Dims, middle: Dims, last: Dims) -> int | None:
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
