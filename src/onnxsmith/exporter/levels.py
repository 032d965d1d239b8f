"""Compares a module with its graph on one runtime: with the runtime's optimisations, and without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import onnx_ir as ir

from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.exporter.module import called_paths
from onnxsmith.graph.files.load import load
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.base import Feeds, Options, Outputs, Preparer, Session
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.budget import Budget
from onnxsmith.verification.explore import Plan, Run
from onnxsmith.verification.optimisation_levels import again_on_some, agreement_at_both, both_levels, on_some
from onnxsmith.verification.probe import Probe
from onnxsmith.verification.rounding import Rounding, quantises, quantises_inside, roundings
from onnxsmith.verification.session_view import View
from onnxsmith.verification.verify import Evidence, Side, verify

if TYPE_CHECKING:
    from onnxsmith.exporter.state.state_feeding import Feeding

_KEPT = 5
"""Limits the sessions that one process keeps: the exported model at two levels, a probe of it, the conditions of its
branches, and one to spare."""
_INSIDE = (
    "within the steps of 8-bit integers: the optimised graph's product with a quantised weight (MatMulNBits) also "
    "quantises the other operand"
)
"""Says why the optimised graph may differ by more than rounding."""
_SATURATES = (
    "8-bit products of onnxruntime saturate on this processor, which has no VNNI: run with session.x64quantprecision=1"
)
_BOTH_SATURATE = (
    "8-bit products saturate on this processor, which has no VNNI, in PyTorch and in onnxruntime: on other "
    "processors both compute other numbers"
)
_OWN_SATURATION = "PyTorch's 8-bit products saturate on this processor, which has no VNNI, beyond the calibrated range"


@dataclass
class Answers:
    """Counts the answers of the exported model on all inputs. `refusal` is its last refusal of an input."""

    count: int = 0
    refusal: Problem | None = None

    @property
    def none(self) -> Problem | None:
        """Returns the last refusal if the model answered no input; else None."""
        return None if self.count else self.refusal


@dataclass(frozen=True)
class AtLevels:
    """The module, the graph, and the other needs of a comparison on the runtime `name`. `feeding` compares calls in a
    row, if the graph carries a state."""

    name: str
    reference: called_paths.Reference
    candidate: Path | ir.Model
    tolerances: Mapping[str, Rounding]
    arbiter: Arbiter
    sized: Callable[[Mapping[str, int]], Mapping[str, Rounding]]
    feeding: Feeding | None
    budget: Budget
    answers: Answers = field(default_factory=Answers)

    def compared(self, plan: Plan, runs: list[Run]) -> Verification:
        """Compares with the runtime's optimisations on, and on some of the inputs with them off. Adds the runs of the
        module to `runs`."""
        chosen, options = runtimes.parse(self.name)
        with ExitStack() as stack:
            preparer = stack.enter_context(chosen.preparer(keep=_KEPT))
            session = preparer.prepare(self.candidate, options)
            has_levels = options == Options() and "disable" in chosen.levels
            plain = replace(options, optimization="disable") if has_levels else options
            probe = stack.enter_context(Probe(self.candidate, lambda model: preparer.prepare(model, plain)))
            evidence = replace(
                Evidence.of(None, probe, self.arbiter), sized=self.sized, sides=probe, budget=self.budget
            )
            further = replace(evidence, faults=None)
            if not has_levels:
                return self._once(session, plan, evidence, runs)
            off, model = session.at("disable"), load(self.candidate)
            if quantises_inside(model):
                # only the optimised graph quantises more: the file itself has to agree within rounding
                inner = replace(self, tolerances=_wider(self.tolerances, roundings(model, inside=True)))
                found = self._once(off, plan, evidence, runs)
                return found if found.differs else inner._again(session, plan, found, Evidence(), ("off", "on"), runs)
            may_saturate = _may_saturate(model)
            found = self._once(session, plan, evidence, runs)
            if found.differs:
                return self._without_saturation(preparer, off, plan, evidence, found, runs) if may_saturate else found
            both = self._again(off, plan, found, further, ("on", "off"), runs)
            if both.differs and may_saturate and self._both_saturate(preparer, off, on_some(plan, runs)):
                return replace(found, untried=(*found.untried, _BOTH_SATURATE))
            return both

    def _side(self, session: Session) -> Side:
        label = f"the exported model on {self.name} ({session.provider})"
        return Side(label, _with_all_inputs(session, self.reference.signature, self.answers))

    def _verified(self, session: Session, plan: Plan, evidence: Evidence, runs: list[Run]) -> Verification:
        module = Side("PyTorch, eager, on the CPU", self.reference)
        return verify(module, self._side(session), plan, self.tolerances, evidence, on_run=runs.append)

    def _once(self, session: Session, plan: Plan, evidence: Evidence, runs: list[Run]) -> Verification:
        """Compares on all inputs; for a graph with a state, also in calls in a row."""
        found = self._verified(session, plan, evidence, runs)
        if self.feeding is None or found.differs:
            return found
        return self.feeding.compared(found, runs, self._side(session).session)

    def _again(
        self,
        session: Session,
        plan: Plan,
        found: Verification,
        evidence: Evidence,
        words: tuple[str, str],
        runs: Sequence[Run],
    ) -> Verification:
        """Compares at the other level on some of the inputs. `words` name the two levels."""
        other = self._verified(session, again_on_some(plan, runs), evidence, [])
        apart = _INSIDE if words[1] == "on" else ""
        return both_levels(found, other, agreement_at_both(self.name, found, other, words, apart=apart))

    def _without_saturation(
        self,
        preparer: Preparer,
        off: Session,
        plan: Plan,
        evidence: Evidence,
        found: Verification,
        runs: list[Run],
    ) -> Verification:
        """Compares with the optimisations on and without saturation, or with them off if onnxruntime refuses that. If
        this differs too, and the module itself saturates, the comparison decides nothing."""
        kept: list[Run] = []
        try:
            again = self._once(preparer.prepare(self.candidate, Options(unsaturated=True)), plan, evidence, kept)
        except OnnxsmithError:
            again = self._once(off, plan, evidence, kept)
        if not again.differs:
            runs[:] = kept
            return replace(again, untried=(*again.untried, _SATURATES))
        from onnxsmith.base.seams.torch.saturation import multiplies_bytes

        module = self.reference.program.module
        return replace(found, unsure=(_OWN_SATURATION,)) if multiplies_bytes(module) else found

    def _both_saturate(self, preparer: Preparer, off: Session, some: Plan) -> bool:
        """Whether a module that agrees with the optimised graph alone saturates like it: without saturation, the graph
        gives equal numbers with and without optimisations."""
        try:
            precise = preparer.prepare(self.candidate, Options(unsaturated=True))
        except OnnxsmithError:  # onnxruntime does not load every graph without saturation: then this shows nothing
            return False
        return not verify(self._side(off), self._side(precise), some, self.tolerances).differs


def _may_saturate(model: ir.Model) -> bool:
    if not quantises(model):
        return False
    from onnxsmith.base.seams.torch.saturation import saturates_here

    return saturates_here()


def _wider(asked_for: Mapping[str, Rounding], wide: Mapping[str, Rounding]) -> Mapping[str, Rounding]:
    """Returns the wider tolerances, except where the user asked for one."""
    return {name: wide.get(name, one) if one.given is None else one for name, one in asked_for.items()}


class _Counted(View):
    """A view that counts its answers."""

    answers: Answers

    def run(self, feeds: Feeds) -> Outputs:
        try:
            outputs = super().run(feeds)
        except OnnxsmithError as error:
            self.answers.refusal = error.problem
            raise
        self.answers.count += 1
        return outputs


def _with_all_inputs(session: Session, wanted: Signature, answers: Answers) -> View:
    """Returns a view of the session that takes all inputs of the torch module, also those that the graph dropped."""
    own = {port.name: port for port in session.signature.inputs}
    inputs = tuple(own.get(port.name, port) for port in wanted.inputs)
    view = _Counted(session, Signature(inputs, session.signature.outputs), {name: name for name in own}, {})
    view.answers = answers
    return view
