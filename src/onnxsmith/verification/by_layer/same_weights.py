"""Pairs layers that have the same weights, because their values differ after an error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from onnxsmith.runtimes.base import Array
from onnxsmith.verification.by_layer.alignment import Alignment
from onnxsmith.verification.by_layer.side_outline import Outline, Step, Type
from onnxsmith.verification.by_layer.tap import Tap
from onnxsmith.verification.metrics.base import widen

_NEAR = 1e-3
"""Limits the relative difference of quantiles that still count as equal. A choice: above the rounding of float16."""
_MANY = 64.0
_MOST = 0.02
"""Limits the elements of a weight that may differ: `_MANY` their number, `_MOST` their share. The error may be in the
weight itself. A choice."""

Print = tuple[float, ...]
"""Holds the number of elements of a weight and three quantiles of their magnitudes, which do not depend on a
transposition or on the order of gates. All biases together come last: folding a normalisation into a convolution
changes them."""


def same_weights(reference: Tap, candidate: Tap, before: Alignment) -> Iterator[tuple[str, str]]:
    """Pairs the results of steps that have the same weights, if no other step has these weights. Leaves out paired
    tensors."""
    sides = (reference, before.left_reference), (candidate, before.left_candidate)
    learners = [{step: _sizes(tap, step) for step in _learners(tap.outline, left)} for tap, left in sides]
    shared = frozenset.intersection(*(frozenset().union(*one.values()) for one in learners))
    ours, theirs = (
        [(step, prints) for step, sizes in known.items() if sizes & shared and (prints := _prints(tap, step))]
        for (tap, _), known in zip(sides, learners, strict=True)
    )
    for a, prints in ours:
        alike = [b for b, others in theirs if _alike(prints, others)]
        if len(alike) == 1 and sum(_alike(one, dict(theirs)[alike[0]]) for _, one in ours) == 1:
            ours_end, theirs_end = _unfolded(reference.outline, candidate.outline, a, alike[0])
            yield from _results(reference.outline, candidate.outline, ours_end, theirs_end)


def _unfolded(ours: Outline, theirs: Outline, a: Step, b: Step) -> tuple[Step, Step]:
    """Returns both steps. If only one of them is read by a normalisation alone, returns this normalisation in place of
    the step: the other side folded it into the weights, which hardly changed."""
    mine, other = _normalisation(ours, a), _normalisation(theirs, b)
    if (mine is None) == (other is None):
        return a, b
    return mine or a, other or b


def _normalisation(outline: Outline, step: Step) -> Step | None:
    """Returns the step that normalises the only result of the step by stored statistics, if no other step reads the
    result."""
    readers = [outline.steps[reader] for name in step.outputs for reader in outline.readers.get(name, ())]
    alone = len(readers) == 1 and len(step.outputs) == 1
    return readers[0] if alone and "batchnorm" in re.sub("[^a-z]", "", readers[0].op.lower()) else None


def _learners(outline: Outline, left: Sequence[str]) -> list[Step]:
    return [step for step in dict.fromkeys(_learner(outline, name) for name in left) if step is not None]


def _sizes(tap: Tap, step: Step) -> frozenset[int]:
    """Returns the sizes of a step's weights. A print reads all elements, so prints are made only for sizes that occur
    on both sides."""
    return frozenset(one.size for one in map(np.squeeze, tap.weights(step)) if one.ndim > 1)


def _prints(tap: Tap, step: Step) -> tuple[Print, ...]:
    """Returns the prints of a step's weights; empty if the step has no weights. A weight with equal elements identifies
    nothing."""
    arrays = [np.squeeze(one) for one in tap.weights(step) if one.size]
    weights = sorted(_print(one) for one in arrays if one.ndim > 1 and (one != one.flat[0]).any())
    biases = [one.ravel() for one in arrays if one.ndim == 1]  # an LSTM has its biases in one tensor or in two
    return (*weights, _print(np.concatenate(biases)) if biases else (0.0,)) if weights else ()


def _learner(outline: Outline, name: str) -> Step | None:
    """Returns the step that computes the tensor, or the result from which the tensor is taken. Returns None if the step
    has no weights."""
    step = outline.step_of(name)
    while step is not None and step.weights == 0 and step.op == TAKING and len(step.inputs) == 1:
        step = outline.step_of(step.inputs[0])
    return step if step is not None and step.weights > 0 else None


TAKING = "<built-in function getitem>"
"""Names the operator by which a traced program takes one result of several."""
_SHAPING = {"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}


def _print(weight: Array) -> Print:
    sizes = np.abs(widen(weight).ravel())
    places = [sizes.size // 4, sizes.size // 2, 3 * sizes.size // 4]
    return (float(sizes.size), *(float(one) for one in np.partition(sizes, places)[places]))


def _alike(prints: Sequence[Print], others: Sequence[Print]) -> bool:
    if len(prints) != len(others):
        return False
    return all(
        a[0] == b[0] and all(abs(x - y) <= _reach(a[0]) * max(x, y) for x, y in zip(a[1:], b[1:], strict=True))
        for a, b in zip(prints, others, strict=True)
    )


def _reach(count: float) -> float:
    return _NEAR + min(_MANY / max(count, 1.0), _MOST)


def _results(ours: Outline, theirs: Outline, a: Step, b: Step) -> Iterator[tuple[str, str]]:
    """Pairs the results of both steps by position, followed through reshaping until the shapes agree."""
    found, made = _by_place(ours, a), _by_place(theirs, b)
    for place, name in found.items():
        wanted = ours.types.get(name, Type())
        for other in _moved(theirs, made.get(place, "")):
            known = theirs.types.get(other, Type())
            if wanted.shape is not None and known.shape is not None and wanted.agrees(known):
                yield name, other
                break


def _by_place(outline: Outline, step: Step) -> dict[int, str]:
    taken = [outline.steps[reader] for name in step.outputs for reader in outline.readers.get(name, ())]
    if any(one.op == TAKING for one in taken):
        return {int(one.key): one.outputs[0] for one in taken if one.op == TAKING and one.key.isdigit()}
    return dict(enumerate(step.outputs))


def _moved(outline: Outline, name: str) -> Iterator[str]:
    """Yields a tensor, and the tensors that are only reshaped from this tensor."""
    while name:
        yield name
        after = [outline.steps[reader] for reader in outline.readers.get(name, ())]
        shaping = [one for one in after if one.op in _SHAPING and len(one.inputs) == 1 and one.outputs]
        name = shaping[0].outputs[0] if shaping else ""
