"""Compares two sides layer by layer on several inputs, and says on which input each layer differs first."""

from __future__ import annotations

from collections.abc import Sequence

from onnxsmith.base.clock import advance
from onnxsmith.base.report.parts.layers import FirstSeen, Layers, LayersByInput, OneInput
from onnxsmith.comparison.outputs.sides import SideSource
from onnxsmith.comparison.outputs.single_input_layers import LayerOptions, by_layer
from onnxsmith.verification.inputs.generate import Feed

_MOST = 16
"""How many inputs layers are compared on. A choice: each takes as long as a comparison by layer of one input."""


def on_inputs(
    a: SideSource,
    b: SideSource,
    feeds: Sequence[Feed],
    options: LayerOptions,
    tolerance: float | None = None,
    *,
    equal: bool = False,
) -> tuple[Layers, LayersByInput | None]:
    """Compares layers on all `feeds`. Returns the comparison on the first feed with an erring layer, or else on the
    feed with the largest difference. With several feeds, also returns a summary of each.

    Raises:
        OnnxsmithError: `compare/unpaired`; the errors of the runtimes.
    """
    found = []
    for number, feed in enumerate(feeds):
        advance("layers", number, len(feeds))
        found.append(by_layer(a, b, feed, options, tolerance, equal=equal))
    if len(found) == 1:
        return found[0], None
    shown = next((one for one in found if one.culprits), max(found, key=_worst))
    return shown, LayersByInput(tuple(map(_one, found)), tuple(_first_seen(found)))


def chosen(given: Sequence[Feed], differing: Sequence[Feed], worst: Feed) -> tuple[list[Feed], str]:
    """Returns the feeds on which layers are compared, in their order, with a note if some are left out. These are all
    given feeds, and the one with the largest difference. If there are too many, those on which outputs differ take
    precedence."""
    every = [*given, *([] if _among(worst, given) else [worst])]
    if len(every) <= _MOST:
        return every, ""
    kept: list[Feed] = []
    for one in (worst, *differing, *given):
        kept += [one] if len(kept) < _MOST and not _among(one, kept) else []
    said = f"layers were compared on {_MOST} of {len(every)} inputs, those on which outputs differ first"
    return [one for one in every if _among(one, kept)], said


def _among(feed: Feed, others: Sequence[Feed]) -> bool:
    return any(feed.values is other.values for other in others)


def _worst(found: Layers) -> float:
    return max((layer.inherited for layer in found.layers), default=0.0)


def _one(found: Layers) -> OneInput:
    first = found.layer(found.culprits[0]) if found.culprits else None
    return OneInput(
        input=found.input,
        pairs=len(found.layers),
        differing=sum(layer.differs for layer in found.layers),
        worst=_worst(found),
        first="" if first is None else first.name,
        op="" if first is None else first.op,
    )


def _first_seen(found: Sequence[Layers]) -> list[FirstSeen]:
    """Returns the layers with an error of their own, in the order in which the inputs show them."""
    seen: dict[str, FirstSeen] = {}
    for one in found:
        for name in one.culprits:
            layer = one.layer(name)
            own = layer.inherited if layer.own is None else layer.own
            known = seen.setdefault(name, FirstSeen(name, layer.op, one.input, own, 0))
            seen[name] = FirstSeen(name, known.op, known.input, known.own, known.count + 1)
    return list(seen.values())
