"""One export from module to file: capture, simplify, write aside, verify that very file, move it into place."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import onnx_ir as ir

from onnxsmith._version import __version__
from onnxsmith.clock import Clock, stage
from onnxsmith.comparison.arbiter import Arbiter
from onnxsmith.comparison.explore import Plan
from onnxsmith.comparison.rounding import roundings
from onnxsmith.comparison.verdict import ending, problems, verdict
from onnxsmith.comparison.verify import Side, verify
from onnxsmith.comparison.view import View
from onnxsmith.exporter import baked, plugins
from onnxsmith.exporter import capture as capturing
from onnxsmith.exporter import dynamic as dynamic_axes
from onnxsmith.exporter import program as programs
from onnxsmith.exporter.findings import random_nodes
from onnxsmith.exporter.freezing import FrozenAxisError
from onnxsmith.exporter.openness import Probed, probe
from onnxsmith.exporter.settings import Settings
from onnxsmith.exporter.strategies.base import Strategy
from onnxsmith.feeds.generate import Feed, Generator
from onnxsmith.model import opset, ports, shapes
from onnxsmith.model.check import check
from onnxsmith.model.load import load
from onnxsmith.model.save import Stage, staged
from onnxsmith.model.signature import Port, Signature, signature
from onnxsmith.problem import OnnxsmithError, Problem, problem
from onnxsmith.report.base import Part, Report, Verdict
from onnxsmith.report.parts.capture import Capture, PortMap
from onnxsmith.report.parts.simplification import Simplification
from onnxsmith.report.parts.timing import Timing
from onnxsmith.report.parts.verification import Verification, nothing_verified
from onnxsmith.report.parts.written import Written
from onnxsmith.report.parts.written import written as files_written
from onnxsmith.result import Result
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.torch_eager import TorchEager, in_double
from onnxsmith.simplifier.rounds import simplified
from onnxsmith.sources import factory


@contextmanager
def evaluating(module: Any) -> Iterator[bool]:
    """Puts every submodule in evaluation mode, and each back as it was."""
    modes = [(part, part.training) for part in module.modules()]
    training = any(mode for _, mode in modes)
    module.eval()
    try:
        yield training
    finally:
        for part, mode in modes:
            part.training = mode


@dataclass(frozen=True)
class _Made:
    """What one strategy came to."""

    graph: capturing.Graph
    model: ir.Model
    simplification: Simplification | None
    dropped: tuple[str, ...]
    verification: Verification
    written: Written


@dataclass
class Job:
    """What one export works on."""

    target: str
    torch_model: factory.TorchModel
    settings: Settings
    was_training: bool
    _axes: programs.Axes = field(default_factory=dict)

    def run(self, output: str | Path | BinaryIO | None, clock: Clock) -> Result:
        """Does it; `clock` is the running one, for the report."""
        with stage("run eagerly"):
            built = self._built({})
            if not dynamic_axes.is_auto(self.settings.dynamic):
                self._axes = dynamic_axes.parse(self.settings.dynamic, list(built.example))
                built = self._built(self._axes) if self._axes else built
        if dynamic_axes.is_auto(self.settings.dynamic):
            built, made, failures = self._as_open_as_can_be(built, output)
        else:
            made, failures = self._first_that_agrees(built, output)
        part = self._captured(made, built, failures)
        parts = (part, made.simplification, made.verification, made.written, Timing(dict(clock.seconds)))
        lost = baked.constant_inputs(built, made.model, next(iter(made.graph.fixed), ""))
        return self._result(tuple(p for p in parts if p is not None), made, lost)

    def _built(self, axes: programs.Axes) -> programs.Built:
        names = {"input_names": self.settings.input_names, "output_names": self.settings.output_names}
        return programs.build(self.torch_model, axes, **names)

    def _as_open_as_can_be(
        self, fixed: programs.Built, output: str | Path | BinaryIO | None
    ) -> tuple[programs.Built, _Made, tuple[str, ...]]:
        """With every axis dynamic that the module moves and a graph can follow; the others are told of."""
        with stage("probe"):
            probed = probe(fixed)
        told: list[str] = []
        while True:
            self._axes = probed.axes
            built = self._built(self._axes)
            try:
                made, failures = self._first_that_agrees(built, output)
            except FrozenAxisError as error:
                left = probed.without(error.axes)
                if left == probed or not error.axes:
                    raise
                told.append(f"{error.problem.what} ({error.problem.where or 'no line known'}): it is left fixed")
                probed = left
                continue
            if not made.verification.equal and self.settings.verify and probed.groups:
                told.append(f"dynamic {', '.join(map(str, probed.symbols))}: the graph differs, so all axes are fixed")
                probed = Probed(())
                continue
            return built, replace(made, graph=replace(made.graph, notes=(*told, *made.graph.notes))), failures

    def _first_that_agrees(
        self, built: programs.Built, output: str | Path | BinaryIO | None
    ) -> tuple[_Made, tuple[str, ...]]:
        """What the first strategy made whose graph agrees with the module, and why those before it did not. When none
        agrees, it is what the first one had to say: its graph, which differs, or its problem, which is raised."""
        failures: list[str] = []
        first: _Made | OnnxsmithError | None = None
        problems: list[Problem] = []
        for strategy in capturing.strategies(self.settings.strategy):
            if self.settings.strategy is None and not strategy.is_worth_it(problems):
                continue
            try:
                made = self.make(strategy, built, output)
            except OnnxsmithError as error:
                if error.problem.id.startswith("save/"):
                    raise
                first = first or error
                problems.append(error.problem)
                failures.append(f"{strategy.title}: {error.problem.what}: {error.problem.why}".removesuffix(": "))
                continue
            unseen = [] if strategy.follows_sizes else _at_one_size(made.verification)
            if unseen and isinstance(first, OnnxsmithError):
                failures.append(f"{strategy.title}: {', '.join(unseen)} was seen at one size only, which shows nothing")
                continue
            if made.verification.equal or not self.settings.verify:
                return made, tuple(failures)
            first = first or made
            failures.append(f"{strategy.title}: its graph gives other results than the module")
        if isinstance(first, _Made):
            return first, tuple(failures[1:])
        assert first is not None
        others = "; ".join(failures[1:])
        if isinstance(first, FrozenAxisError):
            raise first
        said = first.problem
        raise OnnxsmithError(replace(said, why=f"{said.why} (tried as well: {others})") if others else said)

    def make(self, strategy: Strategy, built: programs.Built, output: str | Path | BinaryIO | None) -> _Made:
        """What one strategy comes to; its graph may differ from the module."""
        with stage("capture"):
            graph = capturing.capture(strategy, built.program, built.example, self.settings.opset)
            if graph.fixed and self.settings.strategy is None:
                raise problem(
                    "export/fixed-by-the-example",
                    "the trace takes a Python value from a tensor as the example has it",
                    where=graph.fixed[0],
                    why="another input may take another branch there, and the graph would not follow it",
                    fix="use torch.where or torch.cond there; or accept it with --strategy torchscript",
                )
        model, simplification = graph.model, None
        if self.settings.simplify and self.settings.weights:
            with stage("simplify"):
                model, simplification = simplified(graph.model)
        dropped = ports.drop_unused_inputs(model) if self.settings.drop_unused else ()
        self._record(model)
        verification, written = self._deliver(built, model, output)
        return _Made(graph, model, simplification, dropped, verification, written)

    def _deliver(
        self, built: programs.Built, model: ir.Model, output: str | Path | BinaryIO | None
    ) -> tuple[Verification, Written]:
        if output is None:
            check(plugins.runnable(model), where="the exported model")
            return self._verify(built, model), Written({}, "no output was asked for")
        if isinstance(output, str | Path):
            with staged(output) as target:
                return self._write(built, model, target)
        with tempfile.TemporaryDirectory(prefix="onnxsmith-") as folder, staged(Path(folder) / "model.onnx") as target:
            verification, written = self._write(built, model, target)
            if written.files:
                written = Written({"the given file": output.write(target.target.read_bytes())})
            return verification, written

    def _write(self, built: programs.Built, model: ir.Model, target: Stage) -> tuple[Verification, Written]:
        """Writes aside, verifies that very file (before its weights are left out, where they are; with the functions of
        plugins, which only some runtime has), then commits."""
        bare = plugins.bare(model) if plugins.has_plugins(model) else model
        if self.settings.weights:
            with stage("save"):
                target.write(bare, external_data=self.settings.external_data)
                check(load(target.path), where="the exported model")
        verification = self._verify(built, target.path if self.settings.weights and bare is model else model)
        if self.settings.verify and not verification.equal:
            return verification, Written({}, "the exported model differs from the torch module")
        with stage("save"):
            if not self.settings.weights:
                target.write(ports.without_weights(bare, set(built.program.module.state_dict())), external_data=False)
                check(load(target.path), where="the model without weights")
            files = files_written(target.commit())
        if bare is not model:
            with stage("save"), staged(target.target.with_suffix(".reference.onnx")) as reference:
                reference.write(plugins.runnable(model), external_data=self.settings.external_data)
                files = replace(files, files={**files.files, **files_written(reference.commit()).files})
        return verification, files

    def _verify(self, built: programs.Built, candidate: Path | ir.Model) -> Verification:
        if isinstance(candidate, ir.Model):
            candidate = plugins.runnable(candidate)
        if not self.settings.verify:
            return nothing_verified("PyTorch, eager", "the exported model", "--no-verify was given")
        name = self.settings.runtime or runtimes.default()
        program = capturing.with_shapes(built.program, load(candidate))
        with stage("shapes"):
            inferred, _ = shapes.inferred(load(candidate))
            generator = replace(Generator.for_model(inferred), signature=program.signature, examples=built.example)
            sizes = capturing.sizes(program.signature, built.example)
            example = Feed("the example", sizes, dict(built.example))
            plan = Plan(generator, (example,), start=sizes, seed=self.settings.seed, random=True, empty=True)
            arbiter = Arbiter(lambda: TorchEager().prepare(in_double(program)))
        with stage("verify"), TorchEager().prepare(program) as a, runtimes.get(name).prepare(candidate) as b:
            reference = Side("PyTorch, eager, on the CPU", a)
            exported = Side(f"the exported model on {name} ({b.provider})", _with_dropped(b, program.signature))
            return verify(reference, exported, plan, roundings(inferred), arbiter)

    def _record(self, model: ir.Model) -> None:
        """What was asked for goes into the file, so that it can be asked for again."""
        asked = {
            "target": self.target,
            "dynamic": self._axes,
            "opset": self.settings.opset,
            "input_names": list(self.settings.input_names),
            "output_names": list(self.settings.output_names),
        }
        model.metadata_props["onnxsmith.export"] = json.dumps({k: v for k, v in asked.items() if v})
        model.metadata_props["onnxsmith.version"] = __version__

    def _captured(self, made: _Made, built: programs.Built, failures: tuple[str, ...]) -> Capture:
        graph, model = made.graph, made.model
        interface = signature(model)
        used = {value.name for value in model.graph.inputs if value.uses() or value.is_graph_output()}
        notes = [*self.torch_model.notes, *graph.notes]
        if self.was_training:
            notes.insert(0, "the module was in training mode; it was exported in evaluation mode and put back")
        notes += [*random_nodes(model), *plugins.notes(model), *baked.notes(built.program)]
        if not self.settings.weights:
            notes.append("weights are left out of the file, so nothing was simplified: that could fold them")
        leaves = zip(built.program.names, built.program.leaves, strict=True)
        constants = tuple(repr(leaf) for name, leaf in leaves if name is None and leaf is not None)
        return Capture(
            target=self.target,
            how=graph.how,
            inputs=tuple(_port_map(p, built.arguments[p.name], p.name in used) for p in interface.inputs),
            outputs=tuple(_port_map(p, built.results[p.name], True) for p in interface.outputs),
            constants=constants,
            opset_asked=self.settings.opset,
            opset_got=opset.of(model),
            opset_how=graph.opset_how,
            ir_version=model.ir_version,
            captured_sizes=graph.sizes,
            dropped=made.dropped,
            notes=tuple(notes),
            tried=failures,
        )

    def _result(self, parts: tuple[Part, ...], made: _Made, lost: tuple[Problem, ...]) -> Result:
        verification, written = made.verification, made.written
        differs = problems(verification, asked=self.settings.verify)
        report = Report(
            command="export",
            verdict=verdict(verification, asked=self.settings.verify),
            headline=f"{self.target} → {next(iter(written.files), 'nothing written')}: {ending(verification)}",
            parts=parts,
            problems=(*lost, *differs) if differs else (),
            notes=() if differs else tuple(one.what for one in lost),
        )
        path = Path(next(iter(written.files))) if written.files else None
        model = plugins.bare(made.model)
        return Result(report, model if report.verdict is Verdict.DONE else None, path)


def _at_one_size(verification: Verification) -> list[str]:
    return [symbol for symbol, seen in (verification.sizes or {}).items() if len(seen) < 2]


def _with_dropped(session: runtimes.Session, wanted: Signature) -> View:
    """The session with the inputs of the torch module, of which the graph may have dropped some."""
    own = {port.name: port for port in session.signature.inputs}
    inputs = tuple(own.get(port.name, port) for port in wanted.inputs)
    return View(session, Signature(inputs, session.signature.outputs), {name: name for name in own}, {})


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
