"""The same operators on every part of a `Split` become one operator before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _split
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.optimizer.rules._bundles import Region


class SplitBranches(Rule):
    """Equal nodes on neighbouring parts of a Split become one node before it: element-wise operators, Reshapes and
    Transposes that do not mix parts, and other operators along other axes. This also holds for graphs of such nodes,
    such as the rotation of query and key by their positions. The constants of the parts are concatenated. A part
    without a summand or a factor gets 0 or 1, which can turn -0.0 into 0.0.

    Fires if it saves nodes. Another Split is needed if a part has other readers.

    Refused:
    1. The concatenated constants would take over 1 kB more than before, because the constant of a part is broadcast
       along the axis.

    Stops where sizes along the axis are unknown, and after 32 nodes for each part. Nodes on two parts are no match if
    one depends on the result of the other.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,2] y) <int64[2] sizes = {2, 2}, float[2] c = {1, 2}, float[2] d = {3, 4}> {
            a, b = Split <axis = 1> (x, sizes)
            e = Add(a, c)
            f = Add(b, d)
            g = Relu(e)
            h = Relu(f)
            y = Mul(g, h)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,2] y) <float[4] c = {1, 2, 3, 4}, int64[2] sizes = {2, 2}> {
            e = Add(x, c)
            f = Relu(e)
            g, h = Split <axis = 1> (f, sizes)
            y = Mul(g, h)
        }
    """

    anchor = ("Split",)
    exactness = Exactness.VALUE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        found = _split.parts(node)
        if found is None or len(node.outputs) < 2:
            return None
        from onnxsmith.optimizer.rules import _bundle_ops
        from onnxsmith.optimizer.rules._bundles import bundle

        axis, sizes = found
        for start, end in _runs(node):
            root = bundle(node.outputs[start:end], axis)
            if root is None or list(root.sizes) != sizes[start:end]:
                continue
            region = _bundle_ops.region(root)
            if region.saved + (end - start == len(sizes)) <= 0 or _bundle_ops.waits(region):
                continue
            before = region.before([node])
            if before is not None:
                which = {"region": region, "start": start, "sizes": sizes}
                return Match(node, (*region.nodes, node), which, before)
        return None

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> Mapping[ir.Value, ir.Value]:
        region: Region = match.found["region"]
        root, start, node = region.root, match.found["start"], match.node
        end, opset = start + len(root.values), facts.opset(match.node)
        if root.values == tuple(node.outputs):
            assert node.inputs[0] is not None
            return region.write(tape, node.inputs[0], opset)
        sizes = [*match.found["sizes"][:start], sum(root.sizes), *match.found["sizes"][end:]]
        parts = _split.split(tape, node.inputs[0], root.axis, sizes, opset)
        others = [*node.outputs[:start], *node.outputs[end:]]
        kept = dict(zip(others, [*parts[:start], *parts[start + 1 :]], strict=True))
        return {**kept, **region.write(tape, parts[start], opset)}


def _runs(node: ir.Node) -> Iterator[tuple[int, int]]:
    """Yields ranges of parts to examine together: all parts, then neighbours with the same readers, the largest range
    first."""
    yield 0, len(node.outputs)
    ways = [tuple(sorted(reader.op_type for reader in value.consumers())) for value in node.outputs]
    starts = [index for index, way in enumerate(ways) if index == 0 or way != ways[index - 1]]
    runs = zip(starts, [*starts[1:], len(ways)], strict=True)
    yield from sorted((run for run in runs if run[1] - run[0] > 1), key=lambda run: run[0] - run[1])
