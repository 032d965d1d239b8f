"""A `Pad` before a `Transpose` whose readers can pad themselves."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _views
from onnxsmith.optimizer.rules._padding import Padding, padding
from onnxsmith.optimizer.rules._patterns import maker, read_elsewhere
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

_PADDERS = ("Conv", "MaxPool", "AveragePool")
"""Operators that can pad their own window."""


class PadTranspose(Rule):
    """Transpose(Pad(x)) is Pad(Transpose(x)) with the amounts at other axes. Before convolutions and pools,
    fuse/pad-conv, fuse/pad-max-pool or fuse/pad-average-pool then take the Pad. Converters write this for networks with
    the channels last.

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
        amounts = [*_taken(found.begin, order), *_taken(found.end, order)]
        refusal = _refusal(found, amounts) or read_elsewhere((node, pad))
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


def _taken(amounts: Sequence[int], order: Sequence[int]) -> list[int]:
    return [amounts[axis] for axis in order]


def _refusal(found: Padding, amounts: Sequence[int]) -> NoMatch | None:
    rank = len(found.begin)
    if min(amounts) < 0:
        return NoMatch("it crops")
    if any((*amounts[:2], *amounts[rank : rank + 2])):
        return NoMatch("batch or channels are padded too")
    return None
