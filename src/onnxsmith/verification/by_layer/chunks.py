"""Splits tensors into chunks that fit into a budget of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnxsmith.verification.by_layer.alignment import Pair

HELD = 6
"""Counts the copies of a tensor that are held at once: the reference's, the candidate's of the plain and the forced
run, and three on the way to a separate process and back."""


def chunks(pairs: Sequence[Pair], sizes: Mapping[str, int], budget: int) -> list[list[Pair]]:
    """Returns the pairs in their order, split where the next tensor would exceed `budget` bytes. `sizes` are bytes by
    the candidate's name; a tensor of unknown size counts as the largest known. An oversized tensor gets a chunk of its
    own."""
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
