"""Moves a `Pad` into the convolution or pool after it, which can pad itself."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._padding import padding
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules._ranges import not_negative
from onnxsmith.optimizer.rules.base import Exactness, Match, NoMatch, Rule


class _PadInto(Rule):
    """Moves a Pad of the axes over which a window moves into the operator after it, which pads too."""

    @abstractmethod
    def refusal(self, node: ir.Node, pad: ir.Node, value: float, pads: Sequence[int]) -> NoMatch | None:
        """Returns a refusal if the operator cannot pad with `value`, or by `pads` in total."""

    def match(self, node: ir.Node) -> Match | NoMatch | None:
        pad = maker(node.inputs[0], node, "Pad")
        if pad is None:
            return None
        found = padding(pad)
        if isinstance(found, NoMatch):
            return found
        if found.value is None:
            return NoMatch("the Pad does not pad with a constant", pad)
        if any((*found.begin[:2], *found.end[:2])):
            return NoMatch("batch or channels are also padded", pad)
        if min(*found.begin, *found.end) < 0:
            return NoMatch("it crops", pad)
        own = _own_pads(node, len(found.begin) - 2)
        if isinstance(own, NoMatch):
            return own
        pads = [a + b for a, b in zip(own, (*found.begin[2:], *found.end[2:]), strict=True)]
        refusal = self.refusal(node, pad, found.value, pads)
        return refusal or Match(node, (node, pad), {"pads": pads, "source": pad.inputs[0]})

    def rewrite(self, tape: ir.tape.Tape, match: Match) -> ir.Value:
        attributes = {name: value for name, value in match.node.attributes.items() if name != "auto_pad"}
        inputs = [match.found["source"], *match.node.inputs[1:]]
        return tape.op(match.node.op_type, inputs, {**attributes, **self.written(match)})

    def written(self, match: Match) -> dict[str, list[int] | int]:
        """Returns the attributes for the padding."""
        return {"pads": match.found["pads"]}


def _kernel(node: ir.Node) -> list[int] | None:
    """Returns the size of the window; None if it is unknown."""
    given = node.attributes.get("kernel_shape")
    if given is not None:
        return None if given.is_ref() else list(given.as_ints())
    dims = facts.dims(node.inputs[1]) if len(node.inputs) > 1 else None
    sizes = [dim for dim in (dims or ())[2:] if isinstance(dim, int)]
    return None if dims is None or len(sizes) + 2 != len(dims) else sizes


def _own_pads(node: ir.Node, axes: int) -> list[int] | NoMatch:
    """Returns the operator's own padding: before each axis of its window, then after each; a refusal if unknown."""
    if any(attribute.is_ref() for attribute in node.attributes.values()):
        return NoMatch("the node uses attributes of the enclosing function", node)
    auto = node.attributes.get("auto_pad")
    mode = auto.as_string() if auto is not None else "NOTSET"
    pads = node.attributes.get("pads")
    if mode == "VALID" or (mode == "NOTSET" and pads is None):
        return [0] * (2 * axes)
    if mode == "NOTSET" and pads is not None:
        own = list(pads.as_ints())
        return own if len(own) == 2 * axes else NoMatch("the node's own padding does not fit its spatial axes", node)
    sizes, strides, dilations = _kernel(node), node.attributes.get("strides"), node.attributes.get("dilations")
    if sizes is None or len(sizes) != axes or (dilations is not None and any(d != 1 for d in dilations.as_ints())):
        return NoMatch(f"the amounts of padding by {mode} are not known", node)
    if strides is not None and any(stride != 1 for stride in strides.as_ints()):
        return NoMatch(f"the amounts of padding by {mode} depend on the size of the data", node)
    less, more = [(size - 1) // 2 for size in sizes], [size // 2 for size in sizes]
    return [*less, *more] if mode == "SAME_UPPER" else [*more, *less]


def _pool_refusal(node: ir.Node, pads: Sequence[int]) -> NoMatch | None:
    """Returns a refusal if no pool can pad so; None otherwise."""
    sizes = _kernel(node)
    if sizes is None or any(pad >= size for pad, size in zip(pads, [*sizes, *sizes], strict=False)):
        return NoMatch("the padding would be as wide as the window", node)
    dilations = node.attributes.get("dilations")
    if dilations is not None and any(dilation != 1 for dilation in dilations.as_ints()):
        return NoMatch("its window has holes", node)
    if integer(node, "ceil_mode", 0) != 0:
        return NoMatch("the last window of the pool may lie beyond the data", node)
    return None


class PadAveragePool(_PadInto):
    """AveragePool(Pad(x)) is one AveragePool that pads and counts its padding (`count_include_pad`), if the Pad adds
    zeros along the axes over which the window moves. timm's pools with TensorFlow's padding SAME are exported like
    this.

    Refused:
    1. The Pad does not pad with zero, or its mode is not `constant`.
    2. Batch or channels are padded.
    3. An amount is below zero, which crops.
    4. An amount, an axis or the padding value is not known.
    5. The pool pads, too, and does not count its padding; one pool cannot count only a part of it.
    6. `ceil_mode` is set: runtimes differ in whether elements beyond the padding count.
    7. The total padding is as wide as the window or wider, which runtimes refuse.
    8. The window has dilations above 1.
    9. The pool pads by `auto_pad` and has strides above 1: its padding then depends on the data's size.
    10. The model's opset is below 7, where a pool could not count its padding.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> {
            a = Pad(x, p)
            y = AveragePool <kernel_shape = [3, 3]> (a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y) {
            y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x)
        }
    """

    anchor = ("AveragePool",)
    exactness = Exactness.REASSOCIATES

    def refusal(self, node: ir.Node, pad: ir.Node, value: float, pads: Sequence[int]) -> NoMatch | None:
        if value != 0:
            return NoMatch("the Pad does not pad with zero", pad)
        if facts.opset(node) < 7:
            return NoMatch("before opset 7, a pool could not count padded elements", node)
        own = _own_pads(node, len(pads) // 2)
        if isinstance(own, NoMatch) or (any(own) and integer(node, "count_include_pad", 0) != 1):
            return NoMatch("the pool also pads, but does not count padded elements", node)
        return _pool_refusal(node, pads)

    def written(self, match: Match) -> dict[str, list[int] | int]:
        return {"pads": match.found["pads"], "count_include_pad": 1}


class PadConv(_PadInto):
    """Conv(Pad(x)) is one Conv that pads more, if the Pad adds zeros along the axes over which the window moves. The
    amounts may be computed, as torch's exporters do. `auto_pad` is replaced by numbers, because the data's size
    changes. Other readers of the padded value keep it.

    Refused:
    1. The Pad does not pad with zero, or its mode is not `constant`.
    2. Batch or channels are padded.
    3. An amount is below zero, which crops.
    4. An amount, an axis or the padding value is not known.
    5. The convolution pads by `auto_pad` and has strides above 1: its padding then depends on the data's size. With
       dilations above 1, runtimes differ.

    ConvTranspose, whose padding crops, is no match.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,6,7] y) <float[1,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9},
        int64[8] p = {0, 0, 1, 0, 0, 0, 1, 3}> {
            a = Pad(x, p)
            y = Conv <pads = [1, 1, 1, 1]> (a, w)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,6,7] y) <float[1,1,3,3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
            y = Conv <pads = [2, 1, 2, 4]> (x, w)
        }
    """

    anchor = ("Conv",)
    exactness = Exactness.REASSOCIATES

    def refusal(self, node: ir.Node, pad: ir.Node, value: float, pads: Sequence[int]) -> NoMatch | None:
        return None if value == 0 else NoMatch("the Pad does not pad with zero", pad)


class PadMaxPool(_PadInto):
    """MaxPool(Pad(x)) is one MaxPool that pads, if the Pad adds -∞, which is never the largest, or adds zeros to values
    that are not negative, such as a Relu's result: each window holds an element of x, which is at least 0. ONNX does
    not define MaxPool for NaN, and runtimes differ, with and without the Pad. timm's pools with TensorFlow's padding
    SAME are exported like this.

    Refused:
    1. The Pad adds another number, or adds zeros to values that may be negative. The lowest number of the dtype is
       refused, too, because x may hold -∞.
    2. Batch or channels are padded, or the Pad's mode is not `constant`.
    3. An amount is below zero, which crops.
    4. An amount, an axis or the padding value is not known.
    5. Zeros are padded and the pool pads, too: a window of padding only would change.
    6. `ceil_mode` is set: a last window that begins in the padding is left out.
    7. The total padding is as wide as the window or wider, which runtimes refuse.
    8. The window has dilations above 1.
    9. The positions of the maxima (`Indices`) are read: they count the padding.
    10. The pool pads by `auto_pad` and has strides above 1: its padding then depends on the data's size.

    Before:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y) <int64[8] p = {0, 0, 1, 1, 0, 0, 1, 1}> {
            r = Relu(x)
            a = Pad(r, p)
            y = MaxPool <kernel_shape = [3, 3]> (a)
        }

    After:
        <ir_version: 8, opset_import: ["": 17]>
        g (float[N,1,4,4] x) => (float[N,1,4,4] y) {
            r = Relu(x)
            y = MaxPool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (r)
        }
    """

    anchor = ("MaxPool",)
    exactness = Exactness.VALUE

    def refusal(self, node: ir.Node, pad: ir.Node, value: float, pads: Sequence[int]) -> NoMatch | None:
        if any(output.uses() or output.is_graph_output() for output in node.outputs[1:]):
            return NoMatch("the indices of the maxima are read, and they would change with the padding", node)
        if value != -math.inf and not (value == 0 and not_negative(pad.inputs[0])):
            return NoMatch("a padded element could be the maximum", pad)
        own = _own_pads(node, len(pads) // 2)
        if isinstance(own, NoMatch) or (any(own) and value == 0):
            return NoMatch("the pool also pads, but not with zero", node)
        return _pool_refusal(node, pads)
