"""Removes a `Pad` that adds nothing, and moves a `Pad` through a view or a `Transpose`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._padding import Padding, padding
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere
from onnxsmith.optimizer.rules._views import KnownDims, Order, first_order, known_dims, viewed
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found


class PadNoop(PatternRule):
    """A Pad whose amounts are all 0 is its data, for any padding value. Models that pad to whole windows, such as Swin
    Transformers, write it for images that fit.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) <int64[4] p = {0, 0, 0, 0}> {
            a = Pad <mode = "reflect"> (x, p)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) {
            y = Relu(x)
        }
    """

    anchor = ("Pad",)
    exactness = Exactness.BITWISE
    pattern = "Pad(x, ...)"
    replacement = "x"

    def check(self, found: Found) -> Answer:
        amounts = padding(found.node, any_value=True)
        return None if isinstance(amounts, NoMatch) or any((*amounts.begin, *amounts.end)) else {}


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
        return read_elsewhere((node, pad)) or _moved_pad(node, pad, source, dims, order, found)

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


def _moved_pad(
    node: ir.Node, pad: ir.Node, source: ir.Value, dims: KnownDims, order: Order, found: Padding
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


_PADDERS = ("Conv", "MaxPool", "AveragePool")
"""Lists operators that can pad their own window."""


class PadTranspose(Rule):
    """Transpose(Pad(x)) is Pad(Transpose(x)) with the amounts at other axes. Before convolutions and pools,
    fuse/pad-conv, fuse/pad-max-pool or fuse/pad-average-pool then take the Pad. Converters write this for networks with
    the channels last, such as Keras's ResNet50, which pads before convolutions with a stride.

    Refused:
    1. The Pad's result has other readers, or is a graph output.
    2. An amount is not known, or the Pad crops.
    3. Batch or channels are padded, which no convolution or pool does.

    No match: a Transpose with other readers, a Pad by other than a constant, and opsets below 11, where the amounts
    were an attribute.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4,5,1] x) => (float[N,1,3,4] y)
        <float[1,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, int64[8] p = {0, 0, 1, 0, 0, 1, 0, 0}> {
            a = Pad(x, p)
            b = Transpose <perm = [0, 3, 1, 2]> (a)
            y = Conv(b, w)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4,5,1] x) => (float[N,1,3,4] y)
        <float[1,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}, int64[8] q = {0, 0, 0, 1, 0, 0, 1, 0}> {
            b = Transpose <perm = [0, 3, 1, 2]> (x)
            a = Pad(b, q)
            y = Conv(a, w)
        }
    """

    anchor = ("Transpose",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        pad = maker(node.inputs[0], node, "Pad")
        order = _views.perm(node)
        if pad is None or order is None or facts.opset(node) < 11 or not _for_padders(node):
            return None
        found = padding(pad)
        if isinstance(found, NoMatch):
            return found
        if found.value is None or len(found.begin) != len(order):
            return None
        amounts = [side[axis] for side in (found.begin, found.end) for axis in order]
        refusal = _crop_refusal(found, amounts) or read_elsewhere((node, pad))
        return refusal or Match(node, (node, pad), {"amounts": amounts, "order": order})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        pad = match.nodes[1]
        moved = tape.op("Transpose", [pad.inputs[0]], {"perm": match.found["order"]})
        amounts = _views.integers(tape, match.found["amounts"], pad.inputs[1])
        return tape.op("Pad", [moved, amounts, *pad.inputs[2:3]], dict(pad.attributes))


def _for_padders(node: ir.Node) -> bool:
    """Whether only operators that pad themselves read the result."""
    value = node.outputs[0]
    readers = value.consumers()
    return (
        bool(readers)
        and not value.is_graph_output()
        and all(
            reader.op_type in _PADDERS
            and not reader.domain
            and reader.graph is node.graph
            and reader.inputs[0] is value
            for reader in readers
        )
    )


def _crop_refusal(found: Padding, amounts: Sequence[int]) -> NoMatch | None:
    rank = len(found.begin)
    if min(amounts) < 0:
        return NoMatch("it crops")
    if any((*amounts[:2], *amounts[rank : rank + 2])):
        return NoMatch("batch or channels are also padded")
    return None
