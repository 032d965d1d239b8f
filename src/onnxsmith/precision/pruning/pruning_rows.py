"""Makes the rows of the report: the layers that lost channels, and the layers that keep all channels, with the
reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from onnxsmith.base.report.parts.pruning import FixedChannels, PrunedLayer
from onnxsmith.base.words import first_few, several
from onnxsmith.graph.structure import walk
from onnxsmith.precision.pruning.channel_removal import Kept
from onnxsmith.precision.pruning.channel_selection import BLOCK, WIDE, Choice
from onnxsmith.precision.pruning.groups import Channels, Group
from onnxsmith.precision.pruning.unfollowed_layers import OPTIMISED, nested, of_onnxruntime, unfollowed


def layers(model: ir.Model, found: Channels, kept: Kept) -> tuple[PrunedLayer, ...]:
    """Returns the layers that became smaller, in the order of the graph."""
    ops = {walk.node_label(node): walk.op_name(node) for node in model.graph}
    each = {slot: len(at) for group in found.free for channel in group.channels[:1] for slot, at in channel}
    return tuple(
        PrunedLayer(label, ops[label], found.links.slots[slot], len(kept[slot]), each.get(slot, 1))
        for slot, label in found.links.opened.items()
        if slot in kept
    )


def fixed(model: ir.Model, found: Channels, kept: Kept, choice: Choice) -> tuple[FixedChannels, ...]:
    """Returns the groups that keep all channels, including those that lose none because of the share or the
    multiple."""
    stay = [FixedChannels(group.layers, len(group.channels), group.reason) for group in found.fixed]
    whole = idle(found, choice, kept) if kept else ()
    return (*stay, *whole, *unfollowed(model, found))


def notes(model: ir.Model) -> Iterator[str]:
    """Yields notes on layers that `prune` does not examine: layers in branches, and operators of onnxruntime."""
    inner, foreign = nested(model), of_onnxruntime(model)
    if inner:
        yield inner
    if foreign:
        yield f"channels are not followed through {foreign}: {OPTIMISED}"


def idle(found: Channels, choice: Choice, kept: Kept | None = None) -> tuple[FixedChannels, ...]:
    """Returns the groups that could lose channels but lose none."""
    return tuple(
        FixedChannels(group.layers, len(group.channels), _why_idle(group, choice))
        for group in found.free
        if not any(slot in (kept or {}) for slot in group.slots)
    )


def _why_idle(group: Group, choice: Choice) -> str:
    multiple, count, each = choice.multiple_of(group), len(group.channels), max(group.each, default=1)
    if multiple == 1:
        return "others matter less" if choice.is_global else "the share is less than a channel"
    whole = choice.multiple or BLOCK
    said = f"{each:,} channels of a layer go together, {count:,} times: " if each > 1 else ""
    if multiple >= count:
        said += f"no smaller number of its {each * count:,} channels is a multiple of {whole}"
        return f"{said}; --multiple 1 lets single ones go"
    if each > 1:
        return f"{said}{each * multiple:,}, the least multiple of {whole}, are more than the share"
    return f"a multiple of {multiple} stays, and the share is less than the next one"


def uneven(found: Channels, layers: Sequence[PrunedLayer], choice: Choice) -> Iterator[str]:
    """Yields a note on wide layers that do not keep a multiple, because their channels are in several groups."""
    multiple = choice.multiple or BLOCK
    odd = [
        one
        for one in layers
        if one.after % multiple and one.before % multiple == 0 and (choice.multiple or one.before >= WIDE)
    ]
    if odd and multiple > 1:
        said = first_few([f"{one.name}: {one.after:,}" for one in odd], _FEW)
        yield (
            f"{several(len(odd), 'layer')} with no multiple of {multiple} channels left: the channels of each lie in "
            f"several groups, which go by themselves ({said})"
        )


_FEW = 3
"""The most layers that a note names. A choice."""
