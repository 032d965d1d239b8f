"""Runs each layer of a variant on the original's values, and yields the results of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from onnxsmith.runtimes.base import Feeds, Value
from onnxsmith.verification.by_layer.alignment import Pair
from onnxsmith.verification.by_layer.chunks import chunks
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap

BUDGET = 2**30
"""The most bytes of tensors held at once. A choice: 1 GiB."""


def forced(
    reference: OnnxTap,
    candidate: OnnxTap,
    feeds: Feeds,
    names: Sequence[str],
    cuts: frozenset[str],
    given: Callable[[Value], Value] = lambda value: value,
    budget: int = BUDGET,
) -> Iterator[tuple[str, Value, Value]]:
    """Yields each of the tensors `names` with its value in the reference and in the candidate. The candidate is cut at
    the tensors `cuts` and reads the reference's values there, after `given` has changed them.

    Raises:
        OnnxsmithError: the runtime's error for a model that is cut.
    """
    for chunk in chunks([Pair(name, name, "name") for name in names], reference.nbytes(feeds), budget):
        asked = [pair.candidate for pair in chunk]
        read = [name for one in asked for name in candidate.outline.segment(one, cuts)[1] if name in cuts]
        ours = reference.values(feeds, tuple(dict.fromkeys([*asked, *read])))
        theirs = candidate.forced(feeds, {name: given(ours[name]) for name in dict.fromkeys(read)}, asked)
        yield from ((name, ours[name], theirs[name]) for name in asked if name in theirs)
