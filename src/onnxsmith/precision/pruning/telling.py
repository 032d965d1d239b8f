"""Makes the rows of the report: the layers that lost channels, and those that keep all of theirs, with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from onnxsmith.model.graph import walk
from onnxsmith.precision.pruning.choosing import Choice
from onnxsmith.precision.pruning.groups import Channels, Group
from onnxsmith.precision.pruning.surgery import Kept
from onnxsmith.precision.pruning.unfollowed import OPTIMISED, nested, of_onnxruntime, unfollowed
from onnxsmith.report.parts.pruning import FixedChannels, PrunedLayer


def layers(model: ir.Model, found: Channels, kept: Kept) -> tuple[PrunedLayer, ...]:
    """The layers that became smaller, in the order of the graph."""
    ops = {walk.node_label(node): walk.op_name(node) for node in model.graph}
    each = {slot: len(at) for group in found.free for channel in group.channels[:1] for slot, at in channel}
    return tuple(
        PrunedLayer(label, ops[label], found.links.slots[slot], len(kept[slot]), each.get(slot, 1))
        for slot, label in found.links.opened.items()
        if slot in kept
    )


def fixed(model: ir.Model, found: Channels, kept: Kept, choice: Choice) -> tuple[FixedChannels, ...]:
    """The groups that stay whole, those that the share or the multiple leaves alone included."""
    stay = [FixedChannels(group.layers, len(group.channels), group.reason) for group in found.fixed]
    return (*stay, *_idle(found, kept, choice), *unfollowed(model, found))


def notes(model: ir.Model) -> Iterator[str]:
    """What prune leaves alone without looking at it: layers in branches, operators of onnxruntime."""
    inner, foreign = nested(model), of_onnxruntime(model)
    if inner:
        yield inner
    if foreign:
        yield f"channels are not followed through {foreign}: {OPTIMISED}"


def _idle(found: Channels, kept: Kept, choice: Choice) -> Iterator[FixedChannels]:
    for group in found.free:
        if kept and not any(slot in kept for slot in group.slots):
            yield FixedChannels(group.layers, len(group.channels), _why_idle(group, choice))


def _why_idle(group: Group, choice: Choice) -> str:
    multiple = choice.multiple_of(group)
    if multiple > 1:
        return f"a multiple of {multiple} stays, and the share is less than the next one"
    return "others matter less" if choice.is_global else "the share is less than a channel"
