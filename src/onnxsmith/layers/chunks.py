"""How many tensors are looked at together: as many as fit into a budget of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxsmith.layers.alignment import Pair

HELD = 6
"""How often a tensor is held at once: of the reference, plain and forced of the candidate, and on its way to a
process of its own and back."""


def chunks(pairs: Sequence[Pair], sizes: Mapping[str, int], budget: int) -> list[list[Pair]]:
    """The pairs in their order, cut where the next would go over `budget` bytes. `sizes` are bytes by the candidate's
    name; one that has none counts as the largest that has. An oversized tensor gets a chunk of its own."""
    most = max(sizes.values(), default=0)
    found: list[list[Pair]] = [[]]
    held = 0
    for pair in pairs:
        size = sizes.get(pair.candidate, most) * HELD
        if found[-1] and held + size > budget:
            found.append([])
            held = 0
        found[-1].append(pair)
        held += size
    return [chunk for chunk in found if chunk]
