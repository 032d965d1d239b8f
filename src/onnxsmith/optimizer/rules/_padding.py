"""Moves a Pad into the convolution or pool after it, which can pad itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules._patterns import integer, maker
from onnxsmith.optimizer.rules.base import Match, NoMatch, Rule


@dataclass(frozen=True)
class Padding:
    """The amounts of a Pad before and after each axis, and its value, None if that is not a constant."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    value: float | None


def padding(node: ir.Node, *, any_value: bool = False) -> Padding | NoMatch:
    """Returns the padding of a Pad, also with computed amounts, or a refusal if it is unknown. `any_value` accepts any
    value, known or not."""
    mode = node.attributes.get("mode")
    if any(attribute.is_ref() for attribute in node.attributes.values()) or facts.opset(node) < 2:
        return NoMatch("it takes its mode from its function", node)
    if facts.opset(node) < 11:
        pads: Sequence[facts.Element] | None = node.attributes["pads"].as_ints() if "pads" in node.attributes else None
        value = node.attributes["value"].as_float() if "value" in node.attributes else 0.0
    else:
        pads = facts.integers(node.inputs[1])
        found = 0.0 if any_value else _value(node)
        if isinstance(found, NoMatch):
            return found
        value = found
    amounts = [pad for pad in pads or () if isinstance(pad, int)]
    if pads is None or len(amounts) != len(pads):
        return NoMatch("how much it pads is not known", node)
    axes = _axes(node, len(amounts) // 2)
    if isinstance(axes, NoMatch):
        return axes
    rank, places = axes
    begin, end = [0] * rank, [0] * rank
    for place, before, after in zip(places, amounts[: len(places)], amounts[len(places) :], strict=True):
        begin[place], end[place] = before, after
    return Padding(tuple(begin), tuple(end), value if mode is None or mode.as_string() == "constant" else None)


def _value(node: ir.Node) -> float | NoMatch:
    given = node.inputs[2] if len(node.inputs) > 2 else None
    array = facts.constant(given)
    if given is None:
        return 0.0
    if array is None or array.size != 1 or array.dtype.kind not in "fiub":
        return NoMatch("what it pads with is not a constant number", given)
    return float(array.item())


def _axes(node: ir.Node, count: int) -> tuple[int, list[int]] | NoMatch:
    """Returns the rank of the data and the axes that are padded, or a refusal."""
    given = node.inputs[3] if len(node.inputs) > 3 else None
    if given is None:
        return count, list(range(count))
    data, axes = facts.dims(node.inputs[0]), facts.integers(given)
    places = [axis for axis in axes or () if isinstance(axis, int)]
    if data is None or axes is None or len(places) != len(axes) or len(places) != count:
        return NoMatch("which axes it pads is not known", node)
    return len(data), [place % len(data) for place in places]


class PadInto(Rule):
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
            return NoMatch("it does not pad with a constant", pad)
        if any((*found.begin[:2], *found.end[:2])):
            return NoMatch("batch or channels are padded too", pad)
        if min(*found.begin, *found.end) < 0:
            return NoMatch("it crops", pad)
        own = own_pads(node, len(found.begin) - 2)
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


def kernel(node: ir.Node) -> list[int] | None:
    """Returns the size of the window; None if it is unknown."""
    given = node.attributes.get("kernel_shape")
    if given is not None:
        return None if given.is_ref() else list(given.as_ints())
    dims = facts.dims(node.inputs[1]) if len(node.inputs) > 1 else None
    sizes = [dim for dim in (dims or ())[2:] if isinstance(dim, int)]
    return None if dims is None or len(sizes) + 2 != len(dims) else sizes


def own_pads(node: ir.Node, axes: int) -> list[int] | NoMatch:
    """Returns the operator's own padding: before each axis of its window, then after each; a refusal if unknown."""
    if any(attribute.is_ref() for attribute in node.attributes.values()):
        return NoMatch("it takes attributes from its function", node)
    auto = node.attributes.get("auto_pad")
    mode = auto.as_string() if auto is not None else "NOTSET"
    pads = node.attributes.get("pads")
    if mode == "VALID" or (mode == "NOTSET" and pads is None):
        return [0] * (2 * axes)
    if mode == "NOTSET" and pads is not None:
        own = list(pads.as_ints())
        return own if len(own) == 2 * axes else NoMatch("it does not pad its own axes", node)
    sizes, strides, dilations = kernel(node), node.attributes.get("strides"), node.attributes.get("dilations")
    if sizes is None or len(sizes) != axes or (dilations is not None and any(d != 1 for d in dilations.as_ints())):
        return NoMatch(f"what {mode} pads is not known", node)
    if strides is not None and any(stride != 1 for stride in strides.as_ints()):
        return NoMatch(f"what {mode} pads depends on the size of the data", node)
    less, more = [(size - 1) // 2 for size in sizes], [size // 2 for size in sizes]
    return [*less, *more] if mode == "SAME_UPPER" else [*more, *less]


def pool_refusal(node: ir.Node, pads: Sequence[int]) -> NoMatch | None:
    """Returns a refusal if no pool can pad so; None otherwise."""
    sizes = kernel(node)
    if sizes is None or any(pad >= size for pad, size in zip(pads, [*sizes, *sizes], strict=False)):
        return NoMatch("the padding would be as wide as the window", node)
    dilations = node.attributes.get("dilations")
    if dilations is not None and any(dilation != 1 for dilation in dilations.as_ints()):
        return NoMatch("its window has holes", node)
    if integer(node, "ceil_mode", 0) != 0:
        return NoMatch("its last window may lie beyond the data", node)
    return None
