"""Pairs the tensors that paired operations read.

If a normalisation is folded into a convolution, one node is left. The origin of this node is the convolution, but the
node computes the normalisation's result. The next operation reads that result in the file and in the module. So the
operands of paired operations are paired, in place of pairs by origin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from onnxsmith.verification.by_layer.alignment import Pair
from onnxsmith.verification.by_layer.side_outline import Outline


def with_operands(reference: Outline, candidate: Outline, pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Returns the pairs in the candidate's order. If an operation is one step on both sides, adds the pairs of its
    operands. `pairs` include the pairs of inputs."""
    steps = Counter(step.origin for step in candidate.steps if step.origin)
    known = {pair.candidate: pair for pair in pairs}
    order = {name: number for number, name in enumerate((*candidate.inputs, *candidate.tensors()))}
    for name in sorted(order, key=order.__getitem__, reverse=True):  # visits an operation before its operands
        found = _operands(reference, candidate, known[name], steps) if name in known else []
        said = [known.get(pair.candidate) for pair in found]
        # One of several operands is paired if all others are confirmed: an exporter may exchange operands of a sum.
        agreeing = [old is not None and old.reference == pair.reference for pair, old in zip(found, said, strict=True)]
        for pair, old in zip(found, said, strict=True):
            if (len(found) == 1 and (old is None or old.how != "port")) or (
                old is None and sum(agreeing) == len(found) - 1
            ):
                known[pair.candidate] = pair
    return tuple(sorted(known.values(), key=lambda pair: order[pair.candidate]))


def _operands(reference: Outline, candidate: Outline, pair: Pair, steps: Counter[str]) -> list[Pair]:
    """Returns pairs of the operands of a pair's operation; empty if it is not the same operation on both sides."""
    ours, theirs = reference.step_of(pair.reference), candidate.step_of(pair.candidate)
    if ours is None or theirs is None or not ours.origin or (ours.origin, ours.kind) != (theirs.origin, theirs.kind):
        return []
    if steps[theirs.origin] != 1 or len(ours.inputs) != len(theirs.inputs):
        return []
    read = list(zip(ours.inputs, theirs.inputs, strict=True))
    if not all(b in candidate.moving and a in reference.moving and _agree(reference, candidate, a, b) for a, b in read):
        return []
    return [Pair(a, b, "operand") for a, b in read if a in reference.maker and b in candidate.maker]


def _agree(reference: Outline, candidate: Outline, a: str, b: str) -> bool:
    return a not in reference.types or b not in candidate.types or reference.types[a].agrees(candidate.types[b])
