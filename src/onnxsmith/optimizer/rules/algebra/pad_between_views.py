"""A `Pad` between Reshapes that only move dimensions of 1."""

from __future__ import annotations

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._padding import Padding, padding
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere
from onnxsmith.optimizer.rules._unit_dimensions import Dims, Order, first_order, known_dims, viewed
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class PadBetweenViews(Rule):
    """View(Pad(View(x))) is Pad(View(x)) with the amounts at other axes, if the views (Reshape, Squeeze, Unsqueeze,
    Flatten) only add, remove and move dimensions of 1. If they cancel each other, it is Pad(x). Before a Conv, one view
    after a Pad of zeros is enough: fuse/pad-conv then takes the Pad. Converters write this for a convolution along one
    axis.

    Refused:
    1. The Pad's result has other readers, or is a graph output.
    2. A dimension of 1 is padded, or an amount is not known.

    No match: shapes with a dimension that is neither a number nor a name, shapes that a constant target cannot express,
    and opsets below 11, where the amounts were an attribute.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,1,T] x) => (float[N,1,1,M] y)
        <int64[1] two = {2}, int64[6] p = {0, 0, 3, 0, 0, 4}> {
            a = Squeeze(x, two)
            b = Pad <mode = "reflect"> (a, p)
            y = Unsqueeze(b, two)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,1,T] x) => (float[N,1,1,M] y) <int64[8] p = {0, 0, 0, 3, 0, 0, 0, 4}> {
            y = Pad <mode = "reflect"> (x, p)
        }
    """

    anchor = _views.VIEWS
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        pad = maker(node.inputs[0], node, "Pad")
        first = maker(pad.inputs[0], node, *_views.VIEWS) if pad is not None else None
        if pad is None or facts.opset(node) < 11:
            return None
        source = first.inputs[0] if first is not None else pad.inputs[0]
        if source is None or (first is None and not _is_for_conv(node, pad)):
            return None
        found = padding(pad, any_value=True)
        if isinstance(found, NoMatch):
            return found
        dims = known_dims(source)
        order = first_order(dims) if dims is not None else None
        if first is not None and order is not None:
            order = viewed(first, order)
        if dims is None or order is None or len(order) != len(found.begin):
            return None
        if any(axis is None for axis, *amounts in zip(order, found.begin, found.end, strict=True) if any(amounts)):
            return NoMatch("a dimension of 1 is padded", pad)
        return read_elsewhere((node, pad)) or _moved(node, pad, source, dims, order, found)

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        pad = match.nodes[1]
        value: ir.Value = match.found["source"]
        if match.found["target"] is not None:
            target = _views.integers(tape, match.found["target"], value)
            value = tape.op("Reshape", [value, target])
        amounts = _views.integers(tape, match.found["amounts"], pad.inputs[1])
        return tape.op("Pad", [value, amounts, *pad.inputs[2:3]], dict(pad.attributes))


def _is_for_conv(node: ir.Node, pad: ir.Node) -> bool:
    """Whether only convolutions read the view, and zeros are padded."""
    readers = node.outputs[0].consumers()
    found = padding(pad)
    is_zero = isinstance(found, Padding) and found.value == 0
    return is_zero and bool(readers) and all(reader.op_type == "Conv" and not reader.domain for reader in readers)


def _moved(
    node: ir.Node, pad: ir.Node, source: ir.Value, dims: Dims, order: Order, found: Padding
) -> Match | NoMatch | None:
    """Returns the match that pads at the axes after the view."""
    after = viewed(node, order)
    if after is None:
        return None
    sizes: list[facts.Element] = [1 if axis is None else dims[axis] for axis in after]
    target = None if facts.same(sizes, dims) else _views.target(dims, sizes)
    if target is None and not facts.same(sizes, dims):
        return None
    by_axis = dict(zip(order, zip(found.begin, found.end, strict=True), strict=True))
    amounts = [by_axis[axis] if axis is not None else (0, 0) for axis in after]
    flat = [before for before, _ in amounts] + [behind for _, behind in amounts]
    return Match(node, (node, pad), {"source": source, "target": target, "amounts": flat})
