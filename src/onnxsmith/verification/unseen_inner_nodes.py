"""Checks whether the inputs show that nodes in branches, loop bodies and local functions differ.

Suppose that two nodes with the same name in two models read the same tensors there, but are not identical, and that the
outputs agree. Each node is then run alone, on generated tensors. If the results differ, the candidate is run with the
reference's node in place of its own. If the check sees no difference on any input, the outputs say nothing about the
node: no input reached it, or what it changes is too small beside other values.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnxsmith.base.words import first_few
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.surgery import same_name_nodes
from onnxsmith.graph.surgery.same_name_nodes import Pair
from onnxsmith.verification.detection_power import Check
from onnxsmith.verification.explore import Run
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.unseen_differences import Read, are_same, description, differ_alone, is_seen

_SESSIONS = 8
"""Limits the pairs for which a separate model is prepared. A choice: each model needs a session."""


def unseen_inner_nodes(reference: Probe, candidate: Probe, runs: Sequence[Run], check: Check) -> tuple[str, ...]:
    """Returns sentences about inner nodes that compute differently although no input shows this to the `check`."""
    if not same_name_nodes.inner_pairs(candidate.model, reference.model, are_same):
        return ()
    model, _ = inferred(candidate.model)
    found = same_name_nodes.inner_pairs(model, reference.model, are_same)
    usual = [(run, candidate.plain(run.feed)) for run in runs]
    hidden = [
        f"{description(pair)} gives different results inside a branch or body, but no output shows this"
        for pair in found[:_SESSIONS]
        if (read := _read(pair)) is not None
        and differ_alone(candidate, pair, read, {}, model.opset_imports)
        and not is_seen(candidate, same_name_nodes.swapped_inside(model, pair), usual, check)
    ]
    return (first_few(hidden, 1, "; "),) if hidden else ()


def _read(pair: Pair) -> Read | None:
    """Returns the dtypes and shapes of the computed tensors that the node reads; None if they are not known, or if it
    reads none. An unknown size, or an expression, is a symbol of its own."""
    known: Read = {}
    symbols: dict[object, str] = {}
    for value in pair.ours.inputs:
        if value is None or value.name not in pair.reads:
            continue
        if value.dtype is None or value.shape is None or not isinstance(value.type, ir.TensorType):
            return None
        sizes = (
            dim if isinstance(dim, int) else symbols.setdefault(dim.value or (value, at), f"n{len(symbols)}")
            for at, dim in enumerate(value.shape)
        )
        known[value.name or ""] = (value.dtype, tuple(sizes))
    return known or None
