"""Finds where two loops with equal inputs first differ: the first iteration, and the first tensor in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import ml_dtypes
import numpy as np

from onnxsmith.base.report.parts.layers import Inside
from onnxsmith.runtimes.base import Value
from onnxsmith.verification.by_layer.pair_difference import value_difference
from onnxsmith.verification.rounding import Rounding, counted
from onnxsmith.verification.value_comparison import is_float

_TERMS = 1024
"""Assumes this number of terms for a sum in one step of a body, as `verification/rounding_terms.py` does."""


@dataclass(frozen=True)
class Inner:
    """Holds a tensor in the body of a node. `values` has one value for each iteration, in order. `path` names the
    bodies around the tensor, the outermost first, as `node/attribute`. `operands` are the names of what its node
    reads."""

    name: str
    op: str
    label: str
    path: tuple[str, ...]
    values: Sequence[Value]
    operands: tuple[str, ...] = ()


Pairs = Sequence[tuple[Inner, Inner]]


def first_inside(reference: Sequence[Inner], candidate: Sequence[Inner]) -> Inside | None:
    """Finds the first tensor that differs by more than rounding, in the order of computation: by iteration, then by
    position in the body. If the tensor's node is a loop or branch, searches its body. Returns None if no common tensor
    differs."""
    pairs = list(_paired(reference, candidate))
    found: Inside | None = None
    outer: list[tuple[str, ...]] = list(dict.fromkeys(b.path for _, b in pairs if len(b.path) == 1))
    while outer:
        firsts = [first for path in outer if (first := _first([pair for pair in pairs if pair[1].path == path]))]
        if not firsts:
            break
        found, tensor = min(firsts, key=lambda one: one[0].iteration)
        below = dict.fromkeys(b.path for _, b in pairs if b.path[:-1] == tensor.path)
        own = [path for path in below if path[-1].rpartition("/")[0] == tensor.label.removeprefix("-> ")]
        outer = _giving(tensor.values[found.iteration - 1], own, candidate) or own
    return found


def _giving(value: Value, paths: Sequence[tuple[str, ...]], tensors: Sequence[Inner]) -> list[tuple[str, ...]]:
    """Returns the bodies that computed this value: of the branches of an If, the one that was taken."""
    return [
        path
        for path in paths
        if any(_same(one, value) for tensor in tensors if tensor.path == path for one in tensor.values)
    ]


def _same(one: Value, other: Value) -> bool:
    return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)


def _first(pairs: Pairs) -> tuple[Inside, Inner] | None:
    """Returns the first difference among the tensors of one body."""
    times = max(len(b.values) for _, b in pairs)
    for number in range(times):
        for place, (a, b) in enumerate(pairs):
            if number >= len(b.values):
                continue
            reason = _difference(a, b, number, place)
            if reason:
                return Inside(b.name, b.op, b.label, number + 1, len(b.values), reason), b
    return None


def _difference(a: Inner, b: Inner, number: int, place: int) -> str:
    if number >= len(a.values):
        return f"computed {len(b.values)} times, and {len(a.values)} times in the reference"
    return value_difference(
        a.values[number], b.values[number], _rounding(a.values[number], (number + 1) * (place + 1))
    ).reason


def _paired(reference: Sequence[Inner], candidate: Sequence[Inner]) -> Iterator[tuple[Inner, Inner]]:
    """Pairs the tensors of equal bodies, body by body in their order; tensors of unlike bodies by name."""
    bodies = _bodies(reference), _bodies(candidate)
    kinds = [[[part.rpartition("/")[2] for part in path] for path in side] for side in bodies]
    if kinds[0] != kinds[1]:
        by_name = {one.name: one for one in reference}
        yield from ((by_name[one.name], one) for one in candidate if one.name in by_name)
        return
    for ours, theirs in zip(bodies[0].values(), bodies[1].values(), strict=True):
        partners = _by_name(ours, theirs) or _by_operator(ours, theirs)
        partners = _by_value(partners, ours, theirs)
        partners |= _inserted(partners, ours, theirs)
        yield from ((partners[one.name], one) for one in theirs if one.name in partners)


def _by_name(ours: Sequence[Inner], theirs: Sequence[Inner]) -> dict[str, Inner]:
    """Returns the reference's tensor for each name of the candidate that both have; nothing if they share less than
    half of the names, which then are counters of two programs."""
    names = {one.name: one for one in ours}
    found = {one.name: names[one.name] for one in theirs if one.name in names}
    return found if 2 * len(found) >= min(len(ours), len(theirs)) else {}


def _by_operator(ours: Sequence[Inner], theirs: Sequence[Inner]) -> dict[str, Inner]:
    """Aligns the operators: a body may lack a step, or have another operator in its place."""
    partners: dict[str, Inner] = {}
    found = SequenceMatcher(None, [one.op for one in ours], [one.op for one in theirs], autojunk=False)
    for kind, start, end, other, last in found.get_opcodes():
        if kind == "equal" or end - start == last - other:
            partners |= {b.name: a for a, b in zip(ours[start:end], theirs[other:last], strict=True)}
    return partners


def _by_value(partners: Mapping[str, Inner], ours: Sequence[Inner], theirs: Sequence[Inner]) -> dict[str, Inner]:
    """Gives a tensor whose partner differs in the first iteration the reference's tensor that it agrees with, if no
    other tensor agrees with that one: the order of independent nodes may be another."""
    right = {one.name: partners[one.name] for one in theirs if one.name in partners and _agree(partners[one.name], one)}
    taken = {one.name for one in right.values()}
    for one in theirs:
        if one.name not in right:
            free = (a for a in ours if a.name not in taken and a.op == one.op)
            same = next((a for a in free if _agree(a, one)), None)
            if same is not None:
                right[one.name] = same
                taken.add(same.name)
            elif one.name in partners:
                break  # it is the first that differs, and the first alone is named
    return {name: one for name, one in partners.items() if one.name not in taken} | right


def _inserted(partners: Mapping[str, Inner], ours: Sequence[Inner], theirs: Sequence[Inner]) -> dict[str, Inner]:
    """Pairs the last of some nodes that the candidate alone has with the tensor of the reference which they change."""
    known, nodes = {one.name for one in ours}, {one.name: one for one in theirs}
    found: dict[str, Inner] = {}
    for one in theirs:
        partner = partners.get(one.name)
        if partner is None or (partner.op, len(partner.operands)) != (one.op, len(one.operands)):
            continue
        for wanted, read in zip(partner.operands, one.operands, strict=True):
            at = read
            while at in nodes and at not in partners and nodes[at].operands:
                at = nodes[at].operands[0]
            if at != read and wanted in known and at in partners and partners[at].name == wanted:
                found[read] = partners[at]
    return found


def _agree(a: Inner, b: Inner) -> bool:
    return bool(a.values and b.values) and not _difference(a, b, 0, 0)


def _bodies(tensors: Sequence[Inner]) -> dict[tuple[str, ...], list[Inner]]:
    found: dict[tuple[str, ...], list[Inner]] = {}
    for one in tensors:
        found.setdefault(one.path, []).append(one)
    return found


def _rounding(value: Value, steps: int) -> Rounding:
    coarse = isinstance(value, np.ndarray) and is_float(value) and value.dtype.kind != "c"
    unit = float(ml_dtypes.finfo(np.asarray(value).dtype).eps) / 2 if coarse else 2.0**-24  # type: ignore[no-untyped-call]
    return counted(_TERMS * steps, steps, unit)
