"""Tries variants of a model, in which some nodes are narrow: their outputs, kernels, and the error of each node."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, problem
from onnxsmith.graph.structure import walk
from onnxsmith.precision.damage import BUDGET, forced
from onnxsmith.precision.keep_list_search import Keep
from onnxsmith.precision.mixed_precision import narrowed
from onnxsmith.precision.narrowable_nodes import Unit, Units
from onnxsmith.runtimes.base import Feeds, Options, Runtime, Session, Value
from onnxsmith.verification.by_layer.onnx_tap import OnnxTap
from onnxsmith.verification.explore import Run, answer
from onnxsmith.verification.rounding import Rounding
from onnxsmith.verification.value_comparison import Difference, difference, is_float

Prepare = Callable[[ir.Model], Session]
"""Prepares a session for a model."""


@dataclass(frozen=True)
class Trial:
    """The result of a variant. If it failed, `found` is the first difference beyond the tolerance, with its output and
    input."""

    passed: bool
    output: str = ""
    input: str = ""
    found: Difference = field(default_factory=Difference)

    def __str__(self) -> str:
        if self.passed:
            return "within tolerance"
        far = (
            f"; the worst element differs by {self.found.worst_rel:.2g} of the output's scale"
            if self.found.worst_rel
            else ""
        )
        return f"{self.output}: {self.found.reason}{far} ({self.input})"


@dataclass
class Trials:
    """Tries variants of `model`, each set of kept nodes once. Nodes in `always` are kept in every variant."""

    model: ir.Model
    units: Units
    to: ir.DataType
    prepare: Prepare
    runs: list[Run]
    roundings: Mapping[str, Rounding]
    always: Keep = frozenset()
    most: int | None = None
    """The most variants to try; None for no limit."""
    typed: bool = False
    """Whether the typed variant has to pass as well (`mixed_precision`)."""
    told: Callable[[int], None] = lambda _: None
    seen: dict[Keep, Trial] = field(default_factory=dict)
    sessions: int = 0
    remembered: int = 0
    refused: int = 0
    """Variants that were not tried because of the limit."""

    def passes(self, keep: Collection[str]) -> bool:
        """Whether the variant with these nodes in float32 is within tolerance on every input; False if the limit of
        variants is reached."""
        key = frozenset(keep) | self.always
        if key not in self.seen and self.most is not None and len(self.seen) >= self.most:
            self.refused += 1
            return False
        return self.trial(key).passed

    def trial(self, keep: Collection[str]) -> Trial:
        """Returns the result of the variant with these nodes in float32."""
        key = frozenset(keep) | self.always
        if key in self.seen:
            self.remembered += 1
        else:
            self.told(len(self.seen))
            self.seen[key] = self._tried(key)
        return self.seen[key]

    def variant(self, keep: Collection[str], *, rounded: bool) -> ir.Model:
        """Returns the model with every node narrow except `keep`."""
        return narrowed(self.model, self.narrow(keep), self.to, rounded=rounded)

    def narrow(self, keep: Collection[str]) -> list[Unit]:
        """Returns the nodes that are narrow in the variant that keeps `keep`."""
        kept = frozenset(keep) | self.always
        return [unit for unit in self.units.units if unit.name not in kept]

    def again(self, run: Run | None = None) -> None:
        """Forgets all results. Call it after adding a condition; `run` is a further input, if there is one."""
        if run is not None:
            self.runs.insert(0, run)
        self.seen.clear()

    def _tried(self, keep: Keep) -> Trial:
        for rounded in (True, False) if self.typed else (True,):
            self.sessions += 1
            with self.prepare(self.variant(keep, rounded=rounded)) as session:
                for at, run in enumerate(self.runs):
                    outputs, refusal = answer(session, run.feed)
                    if refusal is not None or outputs is None:
                        said = f"the variant refuses the input: {refusal.what if refusal else ''}"
                        return self._failed(at, "", Difference(said))
                    for name, value in run.outputs.items():
                        bounds = self.roundings[name].bounds if name in self.roundings else (0.0, 0.0)
                        found = difference(value, outputs[name], *bounds)
                        if found.reason:
                            return self._failed(at, name, found)
        return Trial(True)

    def _failed(self, at: int, output: str, found: Difference) -> Trial:
        """Records a failure, and moves its input to the front: most variants fail on the same input."""
        run = self.runs.pop(at)
        self.runs.insert(0, run)
        return Trial(False, output, run.feed.label, found)


_FATAL = {"runtime/died", "runtime/timeout", "runtime/not-installed", "runtime/unknown"}
MOVING = {
    "Cast", "CastLike", "Concat", "ConstantOfShape", "Expand", "Flatten", "Gather", "GatherElements", "GatherND",
    "Identity", "OneHot", "Pad", "Reshape", "Shape", "Size", "Slice", "Split", "Squeeze", "Tile", "Transpose",
    "Unsqueeze", "Where",
}  # fmt: skip
"""Operators that only move or convert elements. A runtime with kernels for these alone cannot compute in a dtype."""


def without_kernels(trials: Trials, runtime: str) -> dict[str, str]:
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


def node_errors(
    model: ir.Model, units: Units, to: ir.DataType, runtime: Runtime, feeds: Feeds, budget: int = BUDGET
) -> dict[str, float]:
    """Returns the own error of each node: the largest difference of its result, relative to the scale, if it reads the
    reference's rounded values. The error is infinite if only one side is finite. A node in a body has the error of the
    node that holds the body. Nodes whose values cannot be exposed are left out.

    Raises:
        OnnxsmithError: the runtime's error for a model that is cut.
    """
    variant = narrowed(model, units.units, to, rounded=True)
    options = Options()
    with (
        OnnxTap(model, runtime.preparer(), options, "") as reference,
        OnnxTap(variant, runtime.preparer(), options, "") as candidate,
    ):
        names = [name for name in reference.outline.tensors() if name in candidate.outline.maker]
        cuts = frozenset(names)
        values = forced(reference, candidate, feeds, names, cuts, partial(_rounded, to=to), budget)
        own = {name: _error(ours, theirs) for name, ours, theirs in values}
    return _by_unit(model, units, own)


def _by_unit(model: ir.Model, units: Units, own: Mapping[str, float]) -> dict[str, float]:
    nodes = list(walk.nodes(model.graph))
    holders = {inner: node for node in model.graph for inner in walk.inside(node)}
    found = {}
    for unit in units.units:
        node = holders.get(nodes[unit.index], nodes[unit.index])
        known = [own[value.name or ""] for value in node.outputs if value.name in own]
        if known:
            found[unit.name] = max(known)
    return found


def _rounded(value: Value, to: ir.DataType) -> Value:
    if not isinstance(value, np.ndarray) or value.dtype != np.float32:
        return value
    with np.errstate(over="ignore"):
        return value.astype(to.numpy()).astype(np.float32)


def _error(reference: Value, candidate: Value) -> float:
    found = difference(reference, candidate, math.inf, math.inf)
    if found.reason and isinstance(reference, np.ndarray) and is_float(reference):
        return math.inf
    return found.worst_rel
