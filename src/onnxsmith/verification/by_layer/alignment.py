"""Pairs the tensors of two models.

There are five ways of pairing, the surest first. Each pairs the tensors that earlier ways left unpaired:

- ports: inputs and outputs of the models, which the comparison has paired;
- origin: the operation of the exported program that both tensors come from, as torch's exporter wrote it into the file;
  or, if the numbers in its names changed, the operation of the same kind at the same place in the same torch module;
- names: equal names, and names that quantisers and optimisers derive from the original name;
- match: nodes of both graphs paired by their computation, their use and their weights;
- structure: the same operators in the same order after or before paired tensors; and reshaped paired tensors.

A pair may be wrong: its dtypes and shapes are compared once the values are known.

If a normalisation is folded into a convolution, one node is left. The origin of this node is the convolution, but the
node computes the normalisation's result. The next operation reads that result in the file and in the module. So the
operands of paired operations are paired, in place of pairs by origin.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onnxsmith.verification.by_layer.side_outline import Outline, Step
from onnxsmith.verification.by_layer.tensor_pairs import Matches, by_reshaping


@dataclass(frozen=True)
class Pair:
    """Holds two tensors that should be equal. `how` says why: `port`, `origin`, `name`, `match`, `structure`,
    `weights`, `value`, or `graph` if both sides are the same graph."""

    reference: str
    candidate: str
    how: str


@dataclass(frozen=True)
class Alignment:
    """Holds the pairs of two models.

    `pairs` are in the candidate's order. `share` is the part of the float tensors that are paired, on the side with
    fewer tensors: if the other side computes one operation in several steps, the tensors between the steps have no
    counterpart. Tensors that are only moved or reshaped do not count, because one model may slice in one step and
    another in four. `note` names the tensors that were left out of the comparison.
    """

    pairs: tuple[Pair, ...]
    left_reference: tuple[str, ...]
    left_candidate: tuple[str, ...]
    share: float
    note: str = ""


Ports = Mapping[str, str]
"""Maps the reference's names of inputs and outputs to the candidate's names."""


_UNRELIABLE = 0.2
"""Limits the share of contradictions between names and graphs. A contradiction is a pair by name that the match of the
graphs excludes. Above this share a tool has renumbered the tensors, so the match counts more than names. A choice."""


def align(reference: Outline, candidate: Outline, ports: Ports, match: Callable[[], Matches] = Matches) -> Alignment:
    """Pairs the tensors of two models, each tensor of the candidate once. `match` matches the graphs of both sides; it
    is not called if both sides are one graph."""
    known = _Known(reference, candidate)
    known.add(((a, b) for a, b in ports.items() if a in reference.maker or b in candidate.maker), "port")
    matches = Matches() if _are_one_graph(reference, candidate) else match()
    known.add(matches.folded, "match")
    if _contradict(reference, candidate, matches):  # the match counts before names that a tool has renumbered
        known.add(matches.tensors, "match")
    known.add(_by_origin(reference, candidate), "origin")
    known.add(_by_place(reference, candidate, known), "origin")
    known.add(_renumbered(reference, candidate, matches), "match")
    known.add(_by_name(reference, candidate), "name")
    # Again for quantised and dequantised forms, whose counterpart is already in a pair.
    known.add(_by_name(reference, candidate), "name", again=True)
    known.add(matches.tensors, "match")
    _add_structure(reference, candidate, ports, known)
    # Last, because a different shape is either a fault or a wrong pair: fitting partners come before it.
    for found, how in ((_by_name(reference, candidate), "name"), (matches.tensors, "match")):
        known.add(found, how, any_shape=True)
    return known.result()


def _are_one_graph(reference: Outline, candidate: Outline) -> bool:
    ours, theirs = ([(step.op, step.outputs) for step in side.steps] for side in (reference, candidate))
    return ours == theirs


def _contradict(reference: Outline, candidate: Outline, matches: Matches) -> bool:
    """Whether names and the match of the graphs contradict each other too often for names to be trusted."""
    partner = {b: a for a, b in matches.tensors}
    named = [name for name in candidate.tensors() if name in reference.moving and name in partner]
    return sum(partner[name] != name for name in named) > _UNRELIABLE * len(named)


_DIGITS = re.compile(r"\d+")


def _renumbered(reference: Outline, candidate: Outline, matches: Matches) -> Iterator[tuple[str, str]]:
    """Yields the pairs of the match whose names differ in their numbers only and belong to other operators in the other
    model: torch numbers its tensors anew, so `val_34` is a Sigmoid in one file and a MatMul in the other. A tool that
    makes another tensor, such as `linear_scaled` for `linear`, gives it another word."""
    for a, b in matches.tensors:
        own = _operator(reference, a)
        if a == b or _DIGITS.sub("", a) != _DIGITS.sub("", b) or not own or own != _operator(candidate, b):
            continue
        if any(one not in ("", own) for one in (_operator(reference, b), _operator(candidate, a))):
            yield a, b


def _operator(side: Outline, name: str) -> str:
    """Returns the operator that computes a tensor; "" for other tensors."""
    number = side.maker.get(name)
    return "" if number is None else side.steps[number].op


def extended(
    reference: Outline,
    candidate: Outline,
    ports: Ports,
    before: Alignment,
    found: Iterable[tuple[str, str]],
    how: str,
) -> Alignment:
    """Adds further pairs to the alignment, and the pairs that follow from the added ones by structure. Returns `before`
    if `found` is empty."""
    new = list(found)
    if not new:
        return before
    known = _Known(reference, candidate)
    for pair in before.pairs:
        known.add([(pair.reference, pair.candidate)], pair.how, again=True)
    known.add(new, how)
    _add_structure(reference, candidate, ports, known)
    return known.result()


def _add_structure(reference: Outline, candidate: Outline, ports: Ports, known: _Known) -> None:
    inputs = {a: b for a, b in ports.items() if a in reference.inputs}
    known.add(_by_structure(reference, candidate, known, inputs, _forward), "structure")
    known.add(_by_structure(reference, candidate, known, inputs, _backward), "structure")
    partners = {pair.reference: pair.candidate for pair in known.pairs.values()} | inputs
    known.add(by_reshaping(reference, candidate, partners, known.is_free), "structure")


class _Known:
    """Holds the pairs found so far."""

    def __init__(self, reference: Outline, candidate: Outline) -> None:
        self._sides = reference, candidate
        self._free = set(reference.moving), set(candidate.moving)
        self.pairs: dict[str, Pair] = {}
        """Maps the candidate's name of a tensor to its pair."""

    def add(self, found: Iterable[tuple[str, str]], how: str, *, again: bool = False, any_shape: bool = False) -> None:
        """Adds pairs of unpaired tensors. With `any_shape` their shapes may differ, because a fault may change them.
        With `again`, the reference's tensor may be in another pair already: a tensor and its quantised and dequantised
        form correspond to one tensor of the reference."""
        for a, b in found:
            if (again or a in self._free[0]) and b in self._free[1] and (any_shape or self._agree(a, b)):
                self._free[0].discard(a)
                self._free[1].discard(b)
                self.pairs[b] = Pair(a, b, how)

    def _agree(self, a: str, b: str) -> bool:
        ours, theirs = (side.types for side in self._sides)
        return a not in ours or b not in theirs or ours[a].agrees(theirs[b])

    def is_free(self, side: int, name: str) -> bool:
        return name in self._free[side]

    def result(self) -> Alignment:
        _, b = self._sides
        order = {name: number for number, name in enumerate(b.tensors())}
        pairs = sorted((pair for name, pair in self.pairs.items() if name in order), key=lambda p: order[p.candidate])
        left = [
            tuple(name for name in side.tensors() if name in free)
            for side, free in zip(self._sides, self._free, strict=True)
        ]
        return Alignment(tuple(pairs), left[0], left[1], self._share(pairs))

    def _share(self, pairs: Sequence[Pair]) -> float:
        shares = []
        for side, names in zip(self._sides, ({p.reference for p in pairs}, {p.candidate for p in pairs}), strict=True):
            computed = {name for name in side.tensors() if side.is_number(name) and not side.moves(name)}
            paired = {name for name in names if side.is_number(name)}
            shares.append((len(computed | paired), len(paired)))
        count, found = min(shares, key=lambda one: (one[0], -one[1]))
        return found / count if count else 1.0


def _by_origin(reference: Outline, candidate: Outline) -> Iterator[tuple[str, str]]:
    """Pairs operations by their name in the exported program, if module and kind agree as well."""
    ours = _origins(reference)
    for key, name in _origins(candidate).items():
        if key in ours:
            yield ours[key], name


def _origins(outline: Outline) -> dict[tuple[str, str, str], str]:
    """Returns the last tensor that each operation's steps compute, by name, kind and module."""
    found: dict[tuple[str, str, str], str] = {}
    for step in outline.steps:
        if step.origin and step.outputs:
            own = step.origin in step.outputs  # of several results, the one that has the operation's name stands for it
            for name in step.outputs if not own else [step.origin]:
                key = (step.origin if len(step.outputs) == 1 or own else name, step.kind, step.module)
                found[key] = name
    return found


def _by_place(reference: Outline, candidate: Outline, known: _Known) -> Iterator[tuple[str, str]]:
    """Pairs operations by their position among those of one kind in one module, if both sides have equally many."""
    ours, theirs = (_places(side) for side in (reference, candidate))
    for place, names in theirs.items():
        if place in ours and len(ours[place]) == len(names):
            yield from zip(ours[place], names, strict=True)


def _places(outline: Outline) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (_, kind, module), name in _origins(outline).items():
        if kind:
            found[kind, module].append(name)
    return found


_SUFFIXES = ("_DequantizeLinear_Output", "_dequantized", "_fp32", "_cast", "_to_fp32")
"""Lists the suffixes that onnxruntime's quantiser and common converters append to the name of the original tensor."""
_PREFIXES = ("InsertedPrecisionFreeCast_", "InsertedCast_")
"""Lists the prefixes that onnxruntime writes before the name of a tensor that it computes in another dtype."""


def _by_name(reference: Outline, candidate: Outline) -> Iterator[tuple[str, str]]:
    plain = set(reference.moving)
    for name in candidate.tensors():
        if name in plain:
            yield name, name
    for name in candidate.tensors():
        for suffix in _SUFFIXES:
            if name.endswith(suffix) and name.removesuffix(suffix) in plain:
                yield name.removesuffix(suffix), name
        for prefix in _PREFIXES:
            if name.startswith(prefix) and name.removeprefix(prefix) in plain:
                yield name.removeprefix(prefix), name


Digests = dict[str, str]


def _by_structure(
    reference: Outline,
    candidate: Outline,
    known: _Known,
    inputs: Mapping[str, str],
    walk: Callable[[Outline, Mapping[str, str]], Digests],
) -> Iterator[tuple[str, str]]:
    """Pairs tensors that are computed (or used) in the same way, if both sides have equally many of them."""
    anchors = {pair.reference: pair.candidate for pair in known.pairs.values()} | dict(inputs)
    names = {a: f"pair {number}" for number, a in enumerate(anchors)}
    ours = _grouped(walk(reference, names), reference, lambda name: known.is_free(0, name))
    theirs = _grouped(
        walk(candidate, {anchors[a]: text for a, text in names.items()}), candidate, lambda name: known.is_free(1, name)
    )
    for digest, found in theirs.items():
        if len(ours.get(digest, ())) == len(found):
            yield from zip(ours[digest], found, strict=True)


def _grouped(digests: Digests, outline: Outline, is_free: Callable[[str], bool]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name in outline.tensors():
        if name in digests and is_free(name):
            groups[digests[name]].append(name)
    return groups


def _forward(outline: Outline, anchors: Mapping[str, str]) -> Digests:
    """Returns a digest of how each tensor is computed from anchors."""
    found: Digests = dict(anchors)
    for step in outline.steps:
        text = _digest(step, [found.get(name, "?") for name in step.inputs])
        for place, name in enumerate(step.outputs):
            found.setdefault(name, f"{text}.{place}")
    return found


def _backward(outline: Outline, anchors: Mapping[str, str]) -> Digests:
    """Returns a digest of how each tensor is used before anchors; a tensor that leads to no anchor has no digest."""
    found: Digests = dict(anchors)
    for step in reversed(outline.steps):
        for name in step.outputs:
            if name in found:
                continue
            uses: list[str] = []
            for reader in outline.readers.get(name, ()):
                after = outline.steps[reader]
                given = [found.get(made, "") for made in after.outputs]
                if any(given):
                    places = [str(place) for place, read in enumerate(after.inputs) if read == name]
                    # With its places: `a - b` uses a and b differently.
                    uses.append(_digest(after, [*given, *places]))
            if uses:
                found[name] = hashlib.sha1("|".join(sorted(uses)).encode(), usedforsecurity=False).hexdigest()
    return found


def _digest(step: Step, around: Sequence[str]) -> str:
    text = "|".join((step.op, step.key, *around))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def counted(alignment: Alignment) -> dict[str, int]:
    """Counts the pairs of each way."""
    return dict(Counter(pair.how for pair in alignment.pairs))


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
