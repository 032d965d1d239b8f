"""Runs one strategy: captures and simplifies the graph, stages a file, verifies that file, commits it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import onnx_ir as ir

from onnxsmith._version import __version__
from onnxsmith.base import folders, rooms
from onnxsmith.base.clock import stage
from onnxsmith.base.problem import OnnxsmithError, Problem, problem
from onnxsmith.base.report.parts.edits import Simplification
from onnxsmith.base.report.parts.verification import Verification, nothing_verified
from onnxsmith.base.report.parts.written_files import Written
from onnxsmith.base.report.parts.written_files import written as files_written
from onnxsmith.exporter.export_settings import Settings
from onnxsmith.exporter.graph import baked_inputs, input_axes, output_axes
from onnxsmith.exporter.graph import program_capture as capturing
from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.exporter.module import called_paths, translation_trial
from onnxsmith.exporter.module.translation_trial import Trial
from onnxsmith.exporter.module_verification import ModuleAndGraph
from onnxsmith.exporter.strategies.base import Strategy
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.exporter.tracing.size_branches import below, dynamic_axes, turning
from onnxsmith.exporter.translating import custom_operators
from onnxsmith.graph.files.load import load
from onnxsmith.graph.files.save import Stage, commit, staged
from onnxsmith.graph.files.specification_check import check
from onnxsmith.graph.structure import dim_ranges
from onnxsmith.graph.structure.signature import Signature
from onnxsmith.optimizer.kernels import of_check
from onnxsmith.optimizer.simplification_rounds import simplified
from onnxsmith.runtimes.torch_eager import TorchProgram
from onnxsmith.verification import free_values, verification_verdict
from onnxsmith.verification.intermediate_declarations import correct_intermediates
from onnxsmith.verification.ladder import climbed
from onnxsmith.verification.output_declarations import settled, with_clauses

if TYPE_CHECKING:
    from onnxsmith.exporter.graph.omitted_weights import Weights


def option(strategy: Strategy) -> str:
    """Returns the command-line option that chooses a strategy."""
    return f"--strategy {rooms.own_name(type(strategy), Strategy)}"


@dataclass(frozen=True)
class Made:
    """The result of one strategy. `lost` holds a problem for each input that became a constant. `other_path` is the
    problem of a graph that agrees with the module as traced, but not as called. `weightless` says which weights were
    left out, if the user asked for that. `trials` compare the registered translations of a graph that differs."""

    graph: capturing.Graph
    model: ir.Model
    simplification: Simplification | None
    dropped: tuple[str, ...]
    verification: Verification
    written: Written
    lost: tuple[Problem, ...]
    other_path: Problem | None = None
    weightless: str = ""
    trials: tuple[Trial, ...] = ()

    @property
    def has_wrong_translation(self) -> bool:
        """Whether a translation that the user registered computes something else than its operator."""
        return any(one.difference for one in self.trials)

    def problems(self, *, asked: bool = True) -> tuple[Problem, ...]:
        """Returns the problem of a verification that did not pass. `asked` says whether a verification was asked
        for."""
        found = verification_verdict.problems(self.verification, asked=asked)
        return tuple(translation_trial.with_trials(one, self.trials) for one in found)


@dataclass(frozen=True)
class Maker:
    """Runs strategies for one export."""

    target: str
    settings: Settings
    by_standard: bool = False
    """Whether the reference evaluator judges a graph that the usual runtime refuses, or on which it fails."""

    def make(self, strategy: Strategy, built: programs.Built, output: str | Path | BinaryIO | None) -> Made:
        """Runs one strategy. Its graph may differ from the module; the result's `verification` says so."""
        with stage("capture", of=strategy.title):
            program = replace(built.program, folds=self.settings.weights)
            graph = capturing.capture(strategy, program, built.example, self.settings.opset)
            if graph.fixed and self.settings.strategy is None:
                raise problem(
                    "export/fixed-by-the-example",
                    "the trace turned a value of the example's tensor, or the size of a selection, into a constant",
                    where=graph.fixed[0],
                    why="for another input the module may run another branch there, but the graph always runs the "
                    "example's branch",
                    fix=f"use torch.where or torch.cond there; or accept the branch with {option(strategy)}",
                )
        lost = baked_inputs.constant_inputs(built, graph.model, next(iter(graph.fixed), ""))
        if lost and self.settings.verify and self.settings.strategy is None:
            raise OnnxsmithError(lost[0])
        model, simplification = graph.model, None
        if self.settings.simplify:
            with stage("simplify"):
                whole = self.settings.weights
                simplify = partial(simplified if whole else _weights(built).simplified, graph.model)
                wanted = self.settings.target
                if wanted is not None:
                    model, simplification = wanted.fitting(simplify)()
                else:
                    model, simplification = simplify(kernels=of_check(self.settings.verify))
        dropped = _drop_unused_inputs(model) if self.settings.drop_unused else ()
        output_axes.name(model, built.output_axes)
        input_axes.name(model, built.program.signature)
        dim_ranges.record(model, built.program.signature.ranges)
        given = self.settings.verify.free if self.settings.verify else ()
        outputs = [value.name or "" for value in model.graph.outputs]
        free_values.record(model, free_values.read(graph.free).joined(free_values.read(given, outputs)))
        self._record(model, built)
        sides = turning(graph.branches, graph.sizes, dynamic_axes(built.program))
        built = replace(built, numbers=graph.numbers, turned=(*below(graph.bounds, graph.sizes), *sides))
        if self.settings.carried.initial:
            from onnxsmith.exporter.state import state_handover

            state_handover.check_fits(model, self.settings.carried)
            state_handover.record(model, self.settings.carried)
        inside = correct_intermediates(model)
        verification, written = self._deliver(strategy, built, model, output)
        if graph.fixed:
            places = ", ".join(graph.fixed)
            said = (
                f"at {places}, the graph always runs the branch that the example runs; every tried input runs that "
                "branch"
            )
            verification = replace(verification, untried=(*verification.untried, said))
        verification = with_clauses(verification, inside)
        weightless = "" if self.settings.weights else _weights(built).left_out(model)[1]
        other_path = self._other_path(strategy, built, model, verification)
        return Made(graph, model, simplification, dropped, verification, written, lost, other_path, weightless)

    def _deliver(
        self, strategy: Strategy, built: programs.Built, model: ir.Model, output: str | Path | BinaryIO | None
    ) -> tuple[Verification, Written]:
        if output is None:
            check(custom_operators.runnable(model), where="the exported model")
            return settled(self._verify(strategy, built, model), model), Written({}, "no output was asked for")
        if isinstance(output, str | Path):
            return self._write(strategy, built, model, output)
        with folders.temporary() as folder:
            file = folder / "model.onnx"
            verification, written = self._write(strategy, built, model, file)
            if written.files:
                written = Written({"the given file": output.write(file.read_bytes())})
            return verification, written

    def _write(
        self, strategy: Strategy, built: programs.Built, model: ir.Model, output: str | Path
    ) -> tuple[Verification, Written]:
        """Stages a file, verifies it, then commits it. Without weights in the file, verifies the model before its
        weights are left out. With custom operators, verifies the second file, which holds their functions and is
        committed together with the first."""
        bare = custom_operators.bare(model)
        with ExitStack() as stack:
            target = verified = stack.enter_context(staged(output))
            files = {target: bare}
            if bare is not model:
                verified = stack.enter_context(staged(custom_operators.reference(target.target)))
                files[verified] = custom_operators.runnable(model)
            if self.settings.weights:
                self._stage(files, external_data=self.settings.save.external_data)
            verification = self._verify(strategy, built, verified.path if self.settings.weights else files[verified])
            if self.settings.verify and not verification.equal:
                if verification.differs:
                    return verification, Written({}, "the exported model differs from the torch module")
                if not self.settings.save.write_unsure:
                    why = "the check cannot tell whether the exported model is equal; --write-unsure writes it anyway"
                    return verification, Written({}, why)
            verification = settled(verification, model, *files.values())
            if self.settings.weights and verification.misdeclared:
                self._stage(files, external_data=self.settings.save.external_data)
            if not self.settings.weights:
                weights = _weights(built)
                left = {target: weights.left_out(one)[0] for target, one in files.items()}
                self._stage(left, external_data=False)
            with stage("save"):
                return verification, files_written(commit(*files))

    def _stage(self, files: Mapping[Stage, ir.Model], *, external_data: bool | None) -> None:
        where = "the exported model" if self.settings.weights else "the model without weights"
        with stage("save"):
            for target, model in files.items():
                target.write(model, external_data=external_data)
                check(load(target.path), where=where)

    def _verify(self, strategy: Strategy, built: programs.Built, candidate: Path | ir.Model) -> Verification:
        """Compares the graph with the module as called; if they differ and `as_traced` is set, with the module as
        traced."""
        try:
            found = self._compare(strategy, built, candidate)
        except OnnxsmithError as error:
            if error.problem.id != "export/other-path":
                raise
            if not self.settings.as_traced:
                raise OnnxsmithError(called_paths.located(error.problem, built.program, built.example)) from error
            found = None
        if found is not None and not (found.differs and self.settings.as_traced):
            return found
        traced = replace(built, program=called_paths.as_traced(built.program))
        again = self._compare(strategy, traced, candidate)
        said = "compared with the traced module, whose results differ from those of a call"
        return replace(again, untried=(*again.untried, said)) if found is None or not again.differs else found

    def _other_path(
        self, strategy: Strategy, built: programs.Built, model: ir.Model, found: Verification
    ) -> Problem | None:
        """Returns the problem of a graph that differs from the module as called, but not from the module as traced."""
        if self.settings.as_traced:
            return None

        def compare(program: TorchProgram) -> Verification:
            return self._compare(strategy, replace(built, program=program), model)

        return called_paths.explained(built.program, built.example, found, compare)

    def _compare(self, strategy: Strategy, built: programs.Built, candidate: Path | ir.Model) -> Verification:
        """Compares the module with the graph; if the result is unsure, goes on with the further comparisons."""
        if isinstance(candidate, ir.Model):
            candidate = custom_operators.runnable(candidate)
        asked_for = self.settings.verify
        if asked_for is None:
            return nothing_verified("PyTorch, eager", "the exported model", "--no-verify was given")
        subject = ModuleAndGraph.of(
            built,
            candidate,
            asked_for,
            self.settings.carried,
            by_standard=self.by_standard,
            is_traced=not strategy.follows_sizes,
        )
        found = climbed(subject, subject.compared())
        if subject.choice.clause:
            found = replace(found, untried=(*found.untried, subject.choice.clause))
        if self.settings.strategy is None and not strategy.follows_sizes:
            _refuse_single_size(found, subject.program.signature, strategy)
        return replace(found, untried=(*found.untried, *subject.left_out))

    def _record(self, model: ir.Model, built: programs.Built) -> None:
        """Stores the export's options in the file's metadata, so that the export can be repeated."""
        asked = {
            "target": self.target,
            "dynamic": built.axes,
            "opset": self.settings.opset,
            "input_names": list(self.settings.input_names),
            "output_names": list(self.settings.output_names),
            "state": list(self.settings.state),
        }
        model.metadata_props["onnxsmith.export"] = json.dumps({k: v for k, v in asked.items() if v})
        model.metadata_props["onnxsmith.version"] = __version__


def _weights(built: programs.Built) -> Weights:
    """The weights of the module, for a file that leaves them out."""
    from onnxsmith.exporter.graph.omitted_weights import Weights

    return Weights.of(built.program.module)


def _drop_unused_inputs(model: ir.Model) -> tuple[str, ...]:
    from onnxsmith.graph.surgery import graph_input_edits

    return graph_input_edits.drop_unused_inputs(model)


def _refuse_single_size(verification: Verification, given: Signature, strategy: Strategy) -> None:
    """Refuses a trace at fixed sizes if a dynamic axis was compared at one size only."""
    still = [symbol for symbol, seen in (verification.sizes or {}).items() if len({*seen} - {0}) < 2]
    if not still:
        return
    said = Problem(
        "export/frozen-axis",
        f"the trace was compared with the module at one size of {', '.join(still)} only",
        why="such a trace may contain sizes of the example as constants; only a run at other sizes can show that "
        "it does not",
        fix="leave that axis out of --dynamic, give an example that also runs at other sizes, or accept the trace "
        f"with {option(strategy)}",
    )
    named = [(port.name, axis, dim) for port in given.inputs for axis, dim in enumerate(port.shape or ())]
    raise FrozenAxisError(said, [(name, axis) for name, axis, dim in named if dim in still])
