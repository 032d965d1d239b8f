"""Distinguishes wrong pairs of tensors from tensors that differ.

If a simplifier folds a normalisation into a convolution, the tensor between them has another value in the file, without
a fault. So the models are no longer cut at a tensor that differs. The pair was wrong on two conditions: later tensors
differ if they are computed from the reference's value of this tensor, and agree if they are not. If later tensors agree
either way, a wrong pair does not explain the difference, and the tensor is a finding.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from onnxsmith.verification.by_layer.part_comparison import Parts

_ROUNDS = 4
"""Limits the rounds in which pairs are left out. A choice: each round is a run of both sides."""


@dataclass(frozen=True)
class Sorted:
    """Separates wrong pairs from findings. `kept` are the pairs at which the models can be cut. `otherwise` are wrong
    pairs, whose tensors hold different things on the two sides. `apart` are the other tensors that differ, with the
    reason. Names are the candidate's, in its order."""

    kept: tuple[str, ...]
    otherwise: tuple[str, ...]
    apart: Mapping[str, str]


def sorted_out(parts: Parts) -> Sorted:
    """Sorts the pairs. Raises the errors of the sides."""
    names = [pair.candidate for pair in parts.pairs]
    apart = parts.apart(names)
    plain = parts.plainly_apart() if apart else {}
    left = {name for name in _suspects(parts, names, apart) if name in plain}
    for _ in range(_ROUNDS if apart else 0):
        kept = [name for name in names if name not in left]
        apart = parts.apart(kept)
        more = _suspects(parts, kept, apart)
        if not more:
            break
        left |= more
    kept, found = _decided(parts, [name for name in names if name not in left], [n for n in names if n in left])
    apart = parts.apart(kept) | found if left else apart
    outside = left - found.keys() - set(kept)
    return Sorted(tuple(kept), tuple(name for name in names if name in outside), apart)


def _suspects(parts: Parts, cuts: Sequence[str], apart: Collection[str]) -> set[str]:
    """Returns the tensors that differ and whose reference value makes a later tensor differ."""
    known = frozenset(cuts)
    return {name for name in cuts if name in apart and any(one in apart for one in parts.readers(name, known))}


def _decided(parts: Parts, kept: Sequence[str], left: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Decides on each pair that was left out; pairs that do not affect each other are tested together. Returns the
    pairs at which the models can be cut after all, and the tensors that differ, with the reason."""
    cuts = frozenset(kept)
    apart: dict[str, str] = {}
    for group in _independent(parts, cuts, left):
        together = cuts | group.keys()
        found = parts.apart(
            together, list(dict.fromkeys([*group, *(one for behind in group.values() for one in behind)]))
        )
        for name, behind in group.items():
            differs = any(one in found for one in behind)
            if name in found and not differs:
                apart[name] = found[name]
            elif not differs:
                cuts |= {name}
    return [name for name in parts.partner if name in cuts], apart


def _independent(parts: Parts, cuts: frozenset[str], left: Sequence[str]) -> list[dict[str, list[str]]]:
    """Returns groups of tensors, each tensor with its readers. Within a group, no tensor reads two tensors of the
    group."""
    groups: list[dict[str, list[str]]] = []
    for name in left:
        behind = parts.readers(name, cuts)
        for group in groups:
            if not any(set(behind) & set(others) for others in group.values()):
                group[name] = behind
                break
        else:
            groups.append({name: behind})
    return groups
