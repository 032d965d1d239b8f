"""Moves a Pad into the convolution or pool after it, which can pad itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onnxsmith.graph.shapes import facts
from onnxsmith.optimizer.rules.base import NoMatch


@dataclass(frozen=True)
class Padding:
    """Holds the amounts of a Pad before and after each axis, and its value, None if that is not a constant."""

    begin: tuple[int, ...]
    end: tuple[int, ...]
    value: float | None


def padding(node: ir.Node, *, any_value: bool = False) -> Padding | NoMatch:
    """Returns the padding of a Pad, also with computed amounts, or a refusal if it is unknown. `any_value` accepts any
    value, known or not."""
    mode = node.attributes.get("mode")
    if any(attribute.is_ref() for attribute in node.attributes.values()) or facts.opset(node) < 2:
        return NoMatch("the Pad uses attributes of the enclosing function", node)
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
        return NoMatch("the amounts of padding are not known", node)
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
        return NoMatch("the padding value is not a constant number", given)
    return float(array.item())


def _axes(node: ir.Node, count: int) -> tuple[int, list[int]] | NoMatch:
    """Returns the rank of the data and the axes that are padded, or a refusal."""
    given = node.inputs[3] if len(node.inputs) > 3 else None
    if given is None:
        return count, list(range(count))
    data, axes = facts.dims(node.inputs[0]), facts.integers(given)
    places = [axis for axis in axes or () if isinstance(axis, int)]
    if data is None or axes is None or len(places) != len(axes) or len(places) != count:
        return NoMatch("the padded axes are not known", node)
    return len(data), [place % len(data) for place in places]
