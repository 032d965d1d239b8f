"""Measures the error that a variant of a model makes in each layer alone: the layer computes from the values of the
original.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from onnxsmith.runtimes.base import Feeds, Options, Runtime, Value
from onnxsmith.verification.by_layer.alignment import Pair
from onnxsmith.verification.by_layer.chunks import chunks
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap

_MERGED = 3
"""The most nodes after a layer that a variant may have merged into it. A choice: an activation and its clamp."""


def damage(
    model: ir.Model, variant: ir.Model, nodes: Sequence[str], runtime: Runtime, feeds: Iterable[Feeds]
) -> dict[str, float]:
    """Returns the error of each of the `nodes` if it alone computes as in the variant. The error is the root mean
    square of the difference divided by that of the result, as a mean over `feeds`. It is infinite if the variant has a
    non-finite number where the original has a finite one. Nodes without a tensor of the same name in the variant are
    left out.

    Raises:
        OnnxsmithError: the runtime's error for a model that is cut.
    """
    found: dict[str, list[float]] = defaultdict(list)
    options = Options()
    with (
        OnnxTap(model, runtime.preparer(), options, "", is_inferred=True) as reference,
        OnnxTap(variant, runtime.preparer(), options, "") as candidate,
    ):
        common = frozenset(name for name in reference.outline.tensors() if name in candidate.outline.maker)
        of_node = _measured_at(model, set(nodes), common)
        names = [name for name in reference.outline.tensors() if name in of_node]
        for feed in feeds:
            for name, ours, theirs in forced(reference, candidate, feed, names, common):
                found[of_node[name]].append(relative_error(ours, theirs))
    return {name: float(np.mean(errors)) for name, errors in found.items()}


def _measured_at(model: ir.Model, nodes: set[str], common: frozenset[str]) -> dict[str, str]:
    """Returns, by the name of the tensor at which it is measured, each node's name. Usually this tensor is the node's
    result. If the variant has merged the node with its only reader, such as a Relu that a quantiser's range replaces,
    it is the reader's result."""
    found: dict[str, str] = {}
    for node in model.graph:
        value = node.outputs[0] if node.outputs and node.name in nodes else None
        for _ in range(_MERGED):
            if value is None or value.name in common:
                break
            readers = [use.node for use in value.uses()]
            value = readers[0].outputs[0] if len(readers) == 1 and readers[0].graph is model.graph else None
        if value is not None and value.name in common:
            found.setdefault(value.name or "", node.name or "")
    return found


def relative_error(reference: Value, candidate: Value) -> float:
    """Returns the root mean square of the difference, relative to that of the reference."""
    a, b = np.asarray(reference, np.float64), np.asarray(candidate, np.float64)
    if a.shape != b.shape or not np.isfinite(b[np.isfinite(a)]).all():
        return math.inf
    both = np.isfinite(a)
    scale = float(np.sqrt(np.mean(a[both] ** 2))) if both.any() else 0.0
    error = float(np.sqrt(np.mean((a[both] - b[both]) ** 2))) if both.any() else 0.0
    return error / scale if scale else (0.0 if not error else math.inf)


def ordered(errors: Mapping[str, float], nodes: Sequence[str]) -> list[str]:
    """Sorts the nodes by damage, the largest first. Nodes that were not measured stand last, in their own order."""
    return sorted(nodes, key=lambda name: -errors.get(name, -1.0))


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
