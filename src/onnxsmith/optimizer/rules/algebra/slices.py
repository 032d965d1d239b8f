"""Joins and removes `Slice`, and makes a `Split` from the Slices of all parts.

Bounds that are numbers are read as a range along each axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules import _node_order, _split
from onnxsmith.optimizer.rules._pattern_rule import Answer, PatternRule
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule

if TYPE_CHECKING:
    from onnxsmith.graph.patterns.match import Match as Found


TO_THE_END = 2**63 - 1
"""Lies beyond every dimension."""
_OPEN = 2**31 - 1
"""Is INT_MAX: exporters write this, or more, for the end of a dimension of unknown size, as the specification
recommends."""


@dataclass(frozen=True)
class _Range:
    """Stands for the range start:end:step along an axis."""

    start: int
    end: int
    step: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether the range has step 1 and bounds that are counted from the beginning."""
        return self.step == 1 and self.start >= 0 and self.end >= 0

    def then(self, inner: _Range) -> _Range | None:
        """Returns the range of x[self][inner]; None if it depends on the dimension's size."""
        if not (self.is_plain and inner.is_plain):
            return None
        end = TO_THE_END if inner.end >= _OPEN else self.start + inner.end
        return _Range(self.start + inner.start, min(end, self.end))


def _ranges(node: ir.Node) -> dict[int, _Range] | None:
    """Returns the ranges of a Slice by axis, counted from the front; None if they are not known numbers. If the
    dimension is known, ranges with step 1 are plain. Returns None before opset 10, where bounds were attributes."""
    if len(node.inputs) < 3 or node.domain:
        return None
    data = facts.dims(node.inputs[0])
    starts, ends = _numbers(node, 1), _numbers(node, 2)
    if data is None or starts is None or ends is None or len(starts) != len(ends):
        return None
    axes = _numbers(node, 3, tuple(range(len(starts))))
    steps = _numbers(node, 4, (1,) * len(starts))
    if axes is None or steps is None or not len(axes) == len(steps) == len(starts):
        return None
    found: dict[int, _Range] = {}
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        place = axis + len(data) if axis < 0 else axis
        if not 0 <= place < len(data) or place in found or step == 0:
            return None
        found[place] = _counted(start, end, step, data[place])
    return found


def _elements(node: ir.Node, index: int, default: tuple[int, ...] | None = None) -> tuple[facts.Element, ...] | None:
    if len(node.inputs) <= index or node.inputs[index] is None:
        return default
    return facts.integers(node.inputs[index])


def _numbers(node: ir.Node, index: int, default: tuple[int, ...] | None = None) -> list[int] | None:
    elements = _elements(node, index, default)
    numbers = [element for element in elements or () if isinstance(element, int)]
    return numbers if elements is not None and len(numbers) == len(elements) else None


def _counted(start: int, end: int, step: int, dim: facts.Element | None) -> _Range:
    """Returns the range with bounds that are counted from the beginning, if the dimension is known."""
    if step == 1 and isinstance(dim, int):
        start, end = (max(bound + dim, 0) if bound < 0 else bound for bound in (start, end))
        return _Range(min(start, dim), min(end, dim))
    return _Range(start, end, step)


def _slice_inputs(found: Mapping[int, _Range]) -> dict[str, list[int]]:
    """Returns starts, ends, axes and steps of a Slice, in the order of its inputs."""
    axes = sorted(found)
    return {
        "starts": [found[axis].start for axis in axes],
        "ends": [found[axis].end for axis in axes],
        "axes": axes,
        "steps": [found[axis].step for axis in axes],
    }


def _parts(node: ir.Node) -> list[ir.Node]:
    """Returns the Slices of the node's graph that together cut one value into parts without gaps, in steps of 1, along
    one axis of known size, in order. Returns an empty list if there are none, or the node is not one of them."""
    source, own = node.inputs[0], _ranges(node)
    dims = facts.dims(source)
    if source is None or own is None or dims is None or len(own) != 1:
        return []
    (axis,) = own
    size = dims[axis]
    at: dict[int, tuple[_Range, ir.Node]] = {}
    for reader in source.consumers():
        found = _ranges(reader) if reader.op_type == "Slice" and reader.graph is node.graph else None
        if found is None or list(found) != [axis] or not found[axis].is_plain or reader.inputs[0] is not source:
            continue
        if found[axis].start in at and at[found[axis].start][0].end != found[axis].end:
            return []
        at.setdefault(found[axis].start, (found[axis], reader))
    place, order = 0, list[ir.Node]()
    while place in at and at[place][0].end > place:
        order.append(at[place][1])
        place = at[place][0].end
    return order if place == size and len(order) > 1 and node in order else []


class SliceChain(PatternRule):
    """Slices of different axes in a row are one Slice. So are Slices of the same axis in steps of 1 with bounds that do
    not count from the end: x[a:b][c:d] is x[a+c:min(b, a+d)]. If several Slices read one Slice, each reads that Slice's
    data instead.

    Refused:
    1. Both cut the same axis, and one has other steps than 1 or counts from the end of a dimension of unknown size.
    2. The first has readers that are not Slices: it would stay.

    No match: Slices whose bounds are not known numbers; three or more Slices that cut a Slice into parts, because they
    become a Split; opsets below 10, where bounds were attributes.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,8,6] x) => (float[N,3,3] y)
        <int64[1] a = {2}, int64[1] b = {7}, int64[2] c = {0, 1}, int64[2] d = {6, 4},
         int64[1] one = {1}, int64[2] both = {2, 1}, int64[2] steps = {2, 1}> {
            s = Slice(x, a, b, one)
            y = Slice(s, c, d, both, steps)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,8,6] x) => (float[N,3,3] y)
        <int64[2] c = {3, 0}, int64[2] d = {6, 6}, int64[2] both = {1, 2}, int64[2] steps = {1, 2}> {
            y = Slice(x, c, d, both, steps)
        }
    """

    anchor = ("Slice",)
    exactness = Exactness.BITWISE
    pattern = "a = Slice(x, ...)  y = Slice(a, ...)"
    replacement = "Slice(x, starts, ends, axes, steps)"

    def check(self, found: Found) -> Answer:
        outer, inner = _ranges(found.node), _ranges(found.made("a"))
        if outer is None or inner is None:
            return None
        middle = found["a"]
        readers = middle.consumers()
        if middle.is_graph_output() or any(reader.op_type != "Slice" or reader.domain for reader in readers):
            return NoMatch("other nodes also read the first Slice", middle)
        if len(readers) > 2 and _parts(found.node):
            return None
        both = dict(inner)
        for axis, later in outer.items():
            joined = inner[axis].then(later) if axis in inner else later
            if joined is None:
                return NoMatch("both cut the same axis, and combining them requires the size of this axis", found.node)
            both[axis] = joined
        written = {name: np.array(numbers, np.int64) for name, numbers in _slice_inputs(both).items()}
        return written if (written["steps"] != 1).any() else {**written, "steps": None}


class SliceNoop(PatternRule):
    """A Slice from 0 in steps of 1 changes nothing if its ends provably reach the ends of the data, for every size. An
    end reaches it if it is INT_MAX or more, a number not below the dimension, or computed as that very dimension.

    The rule does not match before opset 10, where starts and ends were attributes.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y)
        <int64[2] starts = {0, 0}, int64[2] ends = {9223372036854775807, 4}, int64[2] axes = {0, -1}> {
            a = Slice(x, starts, ends, axes)
            y = Relu(a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,4] x) => (float[N,4] y) {
            y = Relu(x)
        }
    """

    anchor = ("Slice",)
    exactness = Exactness.BITWISE
    pattern = "Slice(x, starts, ends, ...)"
    replacement = "x"

    def check(self, found: Found) -> Answer:
        node = found.node
        data, starts = facts.dims(node.inputs[0]), facts.integers(node.inputs[1])
        ends = facts.integers(node.inputs[2])
        if data is None or starts is None or ends is None or any(start != 0 for start in starts):
            return None
        axes = _elements(node, 3, tuple(range(len(starts))))
        steps = _elements(node, 4, (1,) * len(starts))
        if axes is None or steps is None or any(step != 1 for step in steps) or len(axes) != len(ends):
            return None
        for axis, end in zip(axes, ends, strict=True):
            if not isinstance(axis, int) or not -len(data) <= axis < len(data) or not _takes_all(end, data[axis]):
                return None
        return {}


def _takes_all(end: facts.Element, dim: facts.Element | None) -> bool:
    if isinstance(end, int) and end >= (dim if isinstance(dim, int) else _OPEN):
        return True
    return dim is not None and end == dim


class SlicesSplit(Rule):
    """x[:a], x[a:b], x[b:] are the parts of Split(x), if the bounds are numbers without gaps, and the size of the
    dimension is known.

    Refused:
    1. The last part goes to the end of a dimension of unknown size, but a Split needs the size of each part.

    No match: parts that overlap, leave gaps, have other steps than 1 or cut several axes; opsets below 10, where bounds
    were attributes.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,6] x) => (float[N,3] y)
        <int64[1] a = {0}, int64[1] b = {3}, int64[1] c = {9223372036854775807}, int64[1] one = {1}> {
            p = Slice(x, a, b, one)
            q = Slice(x, b, c, one)
            y = Mul(p, q)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,6] x) => (float[N,3] y) <int64[2] split = {3, 3}> {
            p, q = Split <axis = 1> (x, split)
            y = Mul(p, q)
        }
    """

    anchor = ("Slice",)
    exactness = Exactness.BITWISE

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        own = _ranges(node)
        if own is None or len(own) != 1:
            return None
        ((axis, cut),) = own.items()
        dims = facts.dims(node.inputs[0]) or ()
        if not isinstance(dims[axis], int):
            return _opens(node, axis, cut)
        slices = _parts(node)
        if not slices:
            return None
        sizes = [found[axis].end - found[axis].start for found in map(_ranges, slices) if found]
        return Match(node, tuple(slices), {"axis": axis, "sizes": sizes}, before=_node_order.first(slices))

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> dict[ir.Value, ir.Value]:
        axis, sizes, opset = match.found["axis"], match.found["sizes"], facts.opset(match.node)
        parts = _split.split(tape, match.node.inputs[0], axis, sizes, opset)
        return dict(zip((node.outputs[0] for node in match.nodes), parts, strict=True))


def _opens(node: ir.Node, axis: int, cut: _Range) -> NoMatch | None:
    """Returns a refusal if this Slice is the first part and another Slice begins at its end; None otherwise."""
    source = node.inputs[0]
    if source is None or not cut.is_plain or cut.start != 0:
        return None
    for reader in source.consumers():
        other = (_ranges(reader) or {}).get(axis) if reader.op_type == "Slice" else None
        if other is not None and other.step == 1 and other.start == cut.end:
            return NoMatch("the size of the dimension is not known", source)
    return None
