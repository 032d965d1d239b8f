"""One export: chooses the strategies to try and the dynamic axes, and writes the report."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.capture import Capture, PortMap
from onnxsmith.base.report.parts.timing import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.seams.base import alone
from onnxsmith.exporter import factory
from onnxsmith.exporter.export_settings import Settings
from onnxsmith.exporter.foreseen_errors import foreseen
from onnxsmith.exporter.graph import baked_inputs
from onnxsmith.exporter.graph import program_capture as capturing
from onnxsmith.exporter.graph.random_nodes import random_nodes
from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.exporter.inputs.dynamic_axes_syntax import Asked, is_auto
from onnxsmith.exporter.module import dynamic_axes, packed_formats
from onnxsmith.exporter.module.dynamic_axes import Probed
from onnxsmith.exporter.module.evaluation import is_program, set_evaluating
from onnxsmith.exporter.state import dropped_state, state_handover
from onnxsmith.exporter.strategies.base import Strategy
from onnxsmith.exporter.strategy_run import Made, Maker, option
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.exporter.tracing.size_branches import SizeBranch
from onnxsmith.exporter.translating import custom_operators
from onnxsmith.exporter.translating.register import registered
from onnxsmith.graph.structure.signature import Port, signature
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.verification.verification_verdict import ending, problems, verdict


@contextmanager
def evaluating(module: Any) -> Iterator[bool]:
    """Puts every submodule in evaluation mode, and restores the modes at the end. Yields whether a submodule was in
    training mode. Only one thread enters at a time: a module that is being traced holds tensors without values, so no
    other thread can run it."""
    with alone():
        modes = [(part, part.training) for part in module.modules()]
        training = any(mode for _, mode in modes if not is_program(module))
        set_evaluating(module)
        try:
            yield training
        finally:
            for part, mode in modes:
                part.training = mode


@dataclass(frozen=True)
class Try:
    """A strategy with its result `made`, or with the error that stopped it. `agrees` says whether the result agrees
    with the module."""

    strategy: Strategy
    made: Made | None = None
    error: OnnxsmithError | None = None
    agrees: bool = False

    @property
    def failure(self) -> str:
        """Says in one line why the strategy made no graph that agrees with the module."""
        if self.made is not None and self.made.other_path is not None:
            return self.made.other_path.what
        if self.error is None:
            return "its graph gives other results than the module"
        return f"{self.error.problem.what}: {self.error.problem.why}".removesuffix(": ")

    @property
    def brief(self) -> str:
        """Says the failure in a few words: what happened, or the first clause of the cause if that says more."""
        said = self.failure
        if self.error is not None:
            found = self.error.problem
            said = found.why if found.why and found.id in _GENERAL else found.what
        clause = _CLAUSE.split(_KIND.sub("", said), 1)[0]
        return textwrap.shorten(clause, _BRIEF, placeholder=" …")


_GENERAL = {"export/capture-failed", "export/translation-failed"}
"""Problems whose `why` says more than their `what`."""
_BRIEF = 100
"""Characters of a failure in a list of failures. A choice: about a line of a terminal."""
_KIND = re.compile(r"^\w+(Error|Exception): ")
_CLAUSE = re.compile(r"\. |: File |; |\n")


@dataclass
class Job:
    """One export: the module, the settings, and whether the module was in training mode."""

    target: str
    torch_model: factory.TorchModel
    settings: Settings
    was_training: bool

    def run(self, output: str | Path | BinaryIO | None, clock: Clock) -> Result:
        """Runs the export. `clock` is the running clock; the report shows its stages."""
        with packed_formats.explained(self.torch_model.module):
            return self._run(output, clock)

    def _run(self, output: str | Path | BinaryIO | None, clock: Clock) -> Result:
        with stage("run eagerly"):
            built = self._built({})
            if not self.settings.state:
                said = dropped_state.clause(self.torch_model, built.writes)
                self.torch_model = replace(
                    self.torch_model, limits=(*self.torch_model.limits, *([said] if said else []))
                )
            asked = Asked()
            if not is_auto(self.settings.dynamic):
                asked = dynamic_axes.asked(self.settings.dynamic, self.torch_model, built)
                built = self._built(asked.axes, asked.limits) if asked.axes else built
                built = replace(built, output_axes=asked.outputs)
        if is_auto(self.settings.dynamic):
            built, made, failures = self._with_most_dynamic_axes(built, output)
        elif asked.optional:
            built, made, failures = self._with_optional_axes(asked, output)
        else:
            try:
                made, failures = self._first_that_agrees(built, output)
            except FrozenAxisError as error:
                from onnxsmith.exporter.tracing.frozen_code import located  # only a failure needs it

                raise located(error, self.torch_model, built) from error
        part = self._captured(made, built, failures)
        state = state_handover.part(made.model, self.settings.carried, steps=made.verification.verified)
        parts = (part, state, made.simplification, made.verification, made.written, Timing(dict(clock.seconds)))
        return self._result(tuple(p for p in parts if p is not None), made)

    def _built(self, axes: programs.Axes, limits: programs.Limits | None = None) -> programs.Built:
        names = {"input_names": self.settings.input_names, "output_names": self.settings.output_names}
        numbers = bool(self.settings.dynamic)
        return programs.build(self.torch_model, axes, limits=limits or {}, numbers=numbers, **names)

    def _with_optional_axes(
        self, asked: Asked, output: str | Path | BinaryIO | None
    ) -> tuple[programs.Built, Made, tuple[str, ...]]:
        """Exports with the requested axes dynamic. An optional axis that the module fixes becomes fixed."""
        notes: list[str] = []
        while True:
            built = self._built(asked.axes, asked.limits)
            try:
                made, failures = self._first_that_agrees(built, output)
            except OnnxsmithError as error:
                if not asked.optional or error.problem.id != "export/frozen-axis":
                    raise
                frozen = asked.optional.intersection(error.axes if isinstance(error, FrozenAxisError) else ())
                gone = sorted(frozen or asked.optional)  # the error names no optional axis: all become fixed
                notes.append(f"{', '.join(f'{n}:{a}' for n, a in gone)} left fixed: {error.problem.what}")
                asked = asked.without(gone)
                continue
            return built, replace(made, graph=replace(made.graph, notes=(*notes, *made.graph.notes))), failures

    def _with_most_dynamic_axes(
        self, fixed: programs.Built, output: str | Path | BinaryIO | None
    ) -> tuple[programs.Built, Made, tuple[str, ...]]:
        """Exports with every axis dynamic that the module accepts and a graph can express; the others are reported.

        Each failure makes some axes fixed and tries again, until a graph agrees or no dynamic axis is left."""
        with stage("probe"):
            probed = dynamic_axes.probe(fixed)
        notes: list[str] = []
        while True:
            built = self._built(probed.axes)
            try:
                made, failures = self._first_that_agrees(built, output)
            except OnnxsmithError as error:
                if not probed.groups or error.problem.id.startswith("save/"):
                    raise
                frozen = error.axes if isinstance(error, FrozenAxisError) else ()
                left = probed.without(frozen)
                left = left if left != probed else probed.fewer()  # the error names no axis: guess
                notes.append(_left_fixed(probed, left, error.problem))
                probed = left
                continue
            if made.verification.differs and self.settings.verify and probed.groups and made.other_path is None:
                left = probed.fewer()
                notes.append(_left_fixed(probed, left, Problem("verify/different", "the graph differs with them")))
                probed = left
                continue
            return built, replace(made, graph=replace(made.graph, notes=(*notes, *made.graph.notes))), failures

    def _first_that_agrees(
        self, built: programs.Built, output: str | Path | BinaryIO | None
    ) -> tuple[Made, tuple[str, ...]]:
        """Returns the result of the first strategy whose graph agrees with the module, and why earlier strategies
        failed. If no graph agrees, returns the first strategy's graph, which differs. If it has none, raises its
        problem with a few words on each other failure; the exception's notes hold these in full."""
        tries = list(self.tries(built, output))
        failures = tuple(f"{one.strategy.title}: {one.failure}" for one in tries)
        last, first = tries[-1], tries[0]
        if last.agrees:
            assert last.made is not None
            return last.made, failures[:-1]
        if first.made is not None:
            return first.made, failures[1:]
        assert first.error is not None
        said = first.error.problem
        if isinstance(first.error, FrozenAxisError) or len(tries) == 1:
            raise first.error
        others = [at for at, one in enumerate(tries) if one.error is None or one.error.problem != said]
        brief = "; ".join(f"{tries[at].strategy.title}: {tries[at].brief}" for at in others)
        why = said.why + (f" (tried as well: {brief})" if others else "")
        raised = OnnxsmithError(replace(said, why=why, fix=_or_accepted(said, tries)))
        for at in others:
            raised.add_note(failures[at])
        raise raised

    def tries(
        self, built: programs.Built, output: str | Path | BinaryIO | None, *, as_it_is: bool = False
    ) -> Iterator[Try]:
        """Tries the strategies in order, up to the first whose graph agrees with the module. With `as_it_is`, skips the
        strategies that replace lines of the module."""
        before: list[Problem] = []
        for strategy in capturing.strategies(self.settings.strategy):
            if self.settings.strategy is None and not strategy.is_worth_it(before):
                continue
            if as_it_is and not strategy.as_it_is:
                continue
            try:
                # A strategy that fixes values silently is only tried if the verification can find such values.
                if self.settings.translations and not strategy.takes_translations:
                    raise _ignores_translations(strategy)
                if self.settings.strategy is None and not (strategy.follows_sizes or self.settings.verify):
                    raise _needs_verification(strategy)
                with foreseen():
                    made = Maker(self.target, self.settings).make(strategy, built, output)
            except OnnxsmithError as error:
                error = _with_plugin(error)
                if error.problem.id.startswith("save/"):  # a problem of the disk: another strategy would meet it too
                    raise
                before.append(error.problem)
                before += _of_branches(error.branches if isinstance(error, FrozenAxisError) else ())
                yield Try(strategy, error=error)
                continue
            if made.other_path is not None:
                before.append(made.other_path)
            agrees = not (made.verification.differs and self.settings.verify)
            before += [] if agrees else [*_of_branches(made.graph.branches), *_of_counts(made.graph.counted)]
            yield Try(strategy, made, agrees=agrees)
            if agrees:
                return

    def _captured(self, made: Made, built: programs.Built, failures: tuple[str, ...]) -> Capture:
        graph, model = made.graph, made.model
        interface = signature(model)
        used = {value.name for value in model.graph.inputs if value.uses() or value.is_graph_output()}
        notes = [*self.torch_model.notes, *graph.notes]
        if self.was_training:
            notes.insert(0, "the module was in training mode; it was exported in evaluation mode, then reset")
        notes += [
            *random_nodes(model),
            *custom_operators.notes(model, made.written.files, verified=made.verification.equal),
        ]
        packed = packed_formats.note(self.torch_model.module, {node.op_type for node in model.graph})
        notes += [*baked_inputs.notes(built.program), *([packed] if packed else [])]
        if built.output_axes:  # `dynamic_axes` of PyTorch may name outputs
            notes.append(
                f"an axis of an output ({', '.join(built.output_axes)}) that follows from the inputs' axes has their "
                "name, not the given one"
            )
        leaves = zip(built.program.names, built.program.leaves, strict=True)
        constants = tuple(repr(leaf) for name, leaf in leaves if name is None and leaf is not None)
        return Capture(
            target=self.target,
            how=graph.how,
            inputs=tuple(_port_map(p, built.arguments[p.name], p.name in used) for p in interface.inputs),
            outputs=tuple(_port_map(p, built.results[p.name], True) for p in interface.outputs),
            constants=constants,
            opset_asked=self.settings.opset,
            opset_got=opset_conversion.of(model),
            opset_how=graph.opset_how,
            ir_version=model.ir_version,
            captured_sizes=graph.sizes,
            dropped=made.dropped,
            notes=tuple(notes),
            tried=failures,
        )

    def _result(self, parts: tuple[Part, ...], made: Made) -> Result:
        verification, written = made.verification, made.written
        differs = problems(verification, asked=self.settings.verify is not None)
        limits = "".join(f"; {limit}" for limit in self.torch_model.limits)
        said = ending(verification) + limits + (f"; {made.weightless}" if made.weightless else "")
        report = Report(
            command="export",
            verdict=verdict(verification, asked=self.settings.verify is not None),
            headline=f"{self.target} → {next(iter(written.files), 'nothing written')}: {said}",
            parts=parts,
            problems=(*filter(None, [made.other_path]), *made.lost, *differs) if differs else (),
            notes=() if differs else tuple(one.what for one in made.lost),
        )
        path = Path(next(iter(written.files))) if written.files else None
        model = custom_operators.bare(made.model)
        return Result(report, model if report.verdict is Verdict.DONE or path is not None else None, path)


def _needs_verification(strategy: Strategy) -> OnnxsmithError:
    return problem(
        "export/unverified-trace",
        f"{strategy.title} is not tried without verification",
        why="it turns values of the example into constants, and only the verification at other values and sizes finds "
        "them",
        fix="remove --no-verify, or choose this strategy with --strategy",
    )


def _or_accepted(said: Problem, tries: Sequence[Try]) -> str:
    """Returns the fix of a problem. If a branch asks whether a selection is empty, adds the strategy that takes one
    side: the line may lie in a library."""
    refused = (one for one in tries if one.error and one.error.problem.id == "export/fixed-by-the-example")
    asked = next((option(one.strategy) for one in refused), "")
    if said.id != "forward/branch-on-data" or not asked.endswith("torch-selected"):
        return said.fix
    return f"{said.fix}; or, if every input selects two elements or more there, {asked}"


def _of_branches(branches: Sequence[SizeBranch]) -> Iterator[Problem]:
    """Yields a problem for the first of `branches`, the branches on sizes of which the graph has one side."""
    for branch in branches[:1]:
        yield Problem("forward/size-compared", "a branch depends on a dynamic size", where=branch.line)


def _of_counts(lines: Sequence[str]) -> Iterator[Problem]:
    """Yields a problem for the first line at which a number that follows from sizes became a constant."""
    for line in lines[:1]:
        yield Problem("forward/loop-over-blocks", "a number that follows from a size became a constant", where=line)


def _with_plugin(error: OnnxsmithError) -> OnnxsmithError:
    """Returns the error. If no runtime knows a node that a user's translation wrote, adds how to verify that node."""
    if error.problem.id != "runtime/unknown-operator" or not any(one.writers for one in registered()):
        return error
    return error.at(
        "",
        'register a translation in PyTorch\'s operators with deliver="plugin": the file has the node, and the '
        "translation is compared with the module",
    )


def _ignores_translations(strategy: Strategy) -> OnnxsmithError:
    return problem(
        "export/unknown-strategy",
        f"{strategy.title} takes no translations of operators",
        where="custom_translation_table",
        fix="leave out strategy, or the table",
    )


def _left_fixed(probed: Probed, left: Probed, found: Problem) -> str:
    """Returns the note about the axes that are no longer dynamic, with the reason."""
    lost = ", ".join(symbol for symbol in probed.symbols if symbol not in left.symbols)
    return f"{lost} left fixed: {found.what}" + (f" ({found.where})" if found.where else "")


def _port_map(port: Port, argument: str, used: bool) -> PortMap:
    dims = list(enumerate(port.shape or ()))
    return PortMap(
        name=port.name,
        argument=argument,
        dtype=port.dtype,
        shape=port.shape or (),
        dynamic=tuple(f"{axis}={dim}" for axis, dim in dims if isinstance(dim, str)),
        fixed=tuple(f"{axis}={dim}" for axis, dim in dims if isinstance(dim, int)),
        used=used,
    )
