"""Finds operators for which a runtime has kernels in float32 but not in the narrow dtype."""

from __future__ import annotations

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.structure import walk
from onnxsmith.precision.mixed_precision import narrowed
from onnxsmith.precision.narrowable_nodes import Unit
from onnxsmith.precision.variant_trials import Trials

_FATAL = {"runtime/died", "runtime/timeout", "runtime/not-installed", "runtime/unknown"}
MOVING = {
    "Cast", "CastLike", "Concat", "ConstantOfShape", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
    "Identity", "OneHot", "Pad", "Reshape", "Shape", "Size", "Slice", "Split", "Squeeze", "Tile", "Transpose",
    "Unsqueeze", "Where",
}  # fmt: skip
"""Operators that only move or convert elements. A runtime with kernels for these alone cannot compute in a dtype."""


def without(trials: Trials, runtime: str) -> dict[str, str]:
    """Returns the operators that the runtime refuses in the narrow dtype, each with its message. Prepares the whole
    model first; if the runtime refuses it, tries each operator alone.

    Raises:
        OnnxsmithError: `bisect/no-kernels` if the runtime refuses all operators that compute something, or refuses the
            variant though it accepts each operator alone.
    """
    whole = _refusal(trials, list(trials.units.units))
    if not whole:
        return {}
    by_op: dict[str, list[Unit]] = {}
    for unit in trials.units.units:
        by_op.setdefault(unit.op, []).append(unit)
    refused = {op: said for op, units in by_op.items() if (said := _refusal(trials, units))}
    computing = set(by_op) - MOVING
    taken = [unit for op, units in by_op.items() if op not in refused for unit in units]
    # If each operator alone is accepted, the refusal of the whole variant stands.
    left = _refusal(trials, taken) if refused and taken else whole
    if left or (computing and computing <= set(refused)):
        raise _nothing(trials, runtime, left or whole)
    return refused


def _refusal(trials: Trials, units: list[Unit]) -> str:
    """Returns the runtime's message for the model with these nodes narrow; "" if it accepts the model."""
    trials.sessions += 1
    try:
        with trials.prepare(narrowed(trials.model, units, trials.to)):
            return ""
    except OnnxsmithError as error:
        if error.problem.id in _FATAL or not error.problem.id.startswith("runtime/"):
            raise
        return " ".join(f"{error.problem.what} {error.problem.why}".split())


def _nothing(trials: Trials, runtime: str, said: str) -> OnnxsmithError:
    dtype = trials.to.name.lower()
    return problem(
        "bisect/no-kernels",
        f"{runtime} does not compute this model in {dtype}",
        where=f"{len(trials.units.units)} of {walk.count_nodes(trials.model)} nodes",
        why=said[:400],
        fix="add --any-runtime: the keep-list then depends on rounding only, for a runtime that has the dtype",
    )
