"""One export from module to file: capture, simplify, write aside, verify that very file, move it into place."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
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
from onnxsmith.exporter import capture as capturing
from onnxsmith.exporter import openness, plugins
from onnxsmith.exporter import program as programs
from onnxsmith.exporter.dynamic import is_auto
from onnxsmith.exporter.findings import random_nodes
from onnxsmith.exporter.freezing import FrozenAxisError
from onnxsmith.exporter.openness import Probed
from onnxsmith.exporter.settings import Settings
from onnxsmith.exporter.strategies.base import Strategy
from onnxsmith.feeds.generate import Feed, Generator
from onnxsmith.model import opset, ports, shapes
from onnxsmith.model.check import check
from onnxsmith.model.load import load
from onnxsmith.model.save import Stage, commit, staged
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
class Made:
    """What one strategy came to."""

    graph: capturing.Graph
    model: ir.Model
    simplification: Simplification | None
    dropped: tuple[str, ...]
    verification: Verification
    written: Written


@dataclass(frozen=True)
class Try:
    """A strategy, and what it came to: what it made, which agrees with the module or does not, or its problem."""

    strategy: Strategy
    made: Made | None = None
    error: OnnxsmithError | None = None
    agrees: bool = False

    @property
    def failure(self) -> str:
        """In a line, why it did not come to a graph that agrees."""
        if self.error is None:
            return "its graph gives other results than the module"
        return f"{self.error.problem.what}: {self.error.problem.why}".removesuffix(": ")


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
            if not is_auto(self.settings.dynamic):
                self._axes = openness.asked(self.settings.dynamic, built)
                built = self._built(self._axes) if self._axes else built
        if is_auto(self.settings.dynamic):
            built, made, failures = self._as_open_as_can_be(built, output)
        else:
            made, failures = self._first_that_agrees(built, output)
        part = self._captured(made, built, failures)
        parts = (part, made.simplification, made.verification, made.written, Timing(dict(clock.seconds)))
        return self._result(tuple(p for p in parts if p is not None), made)

    def _built(self, axes: programs.Axes) -> programs.Built:
        names = {"input_names": self.settings.input_names, "output_names": self.settings.output_names}
        return programs.build(self.torch_model, axes, **names)

    def _as_open_as_can_be(
        self, fixed: programs.Built, output: str | Path | BinaryIO | None
    ) -> tuple[programs.Built, Made, tuple[str, ...]]:
        """With every axis dynamic that the module moves and a graph can follow; the others are told of."""
        with stage("probe"):
            probed = openness.probe(fixed)
        told: list[str] = []
        while True:
            self._axes = probed.axes
            built = self._built(self._axes)
            try:
                made, failures = self._first_that_agrees(built, output)
            except OnnxsmithError as error:
                if not probed.groups or error.problem.id.startswith("save/"):
                    raise
                frozen = error.axes if isinstance(error, FrozenAxisError) else ()
                left = probed.without(frozen)
                left = left if left != probed else probed.fewer()
                told.append(_left_fixed(probed, left, error.problem))
                probed = left
                continue
            if not made.verification.equal and self.settings.verify and probed.groups:
                left = probed.fewer()
                told.append(_left_fixed(probed, left, Problem("verify/different", "the graph differs with them")))
                probed = left
                continue
            return built, replace(made, graph=replace(made.graph, notes=(*told, *made.graph.notes))), failures

    def _first_that_agrees(
        self, built: programs.Built, output: str | Path | BinaryIO | None
    ) -> tuple[Made, tuple[str, ...]]:
        """What the first strategy made whose graph agrees with the module, and why those before it did not. When none
        agrees, it is what the first one had to say: its graph, which differs, or its problem, which is raised."""
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
        raise OnnxsmithError(replace(said, why=f"{said.why} (tried as well: {'; '.join(failures[1:])})"))

    def tries(self, built: programs.Built, output: str | Path | BinaryIO | None) -> Iterator[Try]:
        """Each strategy that is worth it and what it came to, up to the first whose graph agrees with the module."""
        before: list[Problem] = []
        for strategy in capturing.strategies(self.settings.strategy):
            if self.settings.strategy is None and not strategy.is_worth_it(before):
                continue
            try:
                if self.settings.strategy is None and not (strategy.follows_sizes or self.settings.verify):
                    raise _needs_verification(strategy)
                made = self.make(strategy, built, output)
            except OnnxsmithError as error:
                if error.problem.id.startswith("save/"):
                    raise
                before.append(error.problem)
                yield Try(strategy, error=error)
                continue
            yield Try(strategy, made, agrees=made.verification.equal or not self.settings.verify)
            if made.verification.equal or not self.settings.verify:
                return

    def make(self, strategy: Strategy, built: programs.Built, output: str | Path | BinaryIO | None) -> Made:
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
        verification, written = self._deliver(strategy, built, model, output)
        return Made(graph, model, simplification, dropped, verification, written)

    def _deliver(
        self, strategy: Strategy, built: programs.Built, model: ir.Model, output: str | Path | BinaryIO | None
    ) -> tuple[Verification, Written]:
        if output is None:
            check(plugins.runnable(model), where="the exported model")
            return self._verify(strategy, built, model), Written({}, "no output was asked for")
        if isinstance(output, str | Path):
            return self._write(strategy, built, model, output)
        with tempfile.TemporaryDirectory(prefix="onnxsmith-") as folder:
            file = Path(folder) / "model.onnx"
            verification, written = self._write(strategy, built, model, file)
            if written.files:
                written = Written({"the given file": output.write(file.read_bytes())})
            return verification, written

    def _write(
        self, strategy: Strategy, built: programs.Built, model: ir.Model, output: str | Path
    ) -> tuple[Verification, Written]:
        """Writes aside, verifies that very file (before its weights are left out, where they are), then commits. With
        plugins it is the file beside it that is verified, which has their functions and goes into place with it."""
        bare = plugins.bare(model)
        with ExitStack() as stack:
            target = verified = stack.enter_context(staged(output))
            files = {target: bare}
            if bare is not model:
                verified = stack.enter_context(staged(plugins.reference(target.target)))
                files[verified] = plugins.runnable(model)
            if self.settings.weights:
                self._stage(files, external_data=self.settings.external_data)
            verification = self._verify(strategy, built, verified.path if self.settings.weights else files[verified])
            if self.settings.verify and not verification.equal:
                return verification, Written({}, "the exported model differs from the torch module")
            if not self.settings.weights:
                weights = set(built.program.module.state_dict())
                left = {target: ports.without_weights(one, weights) for target, one in files.items()}
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
            found = verify(reference, exported, plan, roundings(inferred), arbiter)
        if self.settings.strategy is None and not strategy.follows_sizes:
            _check_moved(found, program.signature)
        return found

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

    def _captured(self, made: Made, built: programs.Built, failures: tuple[str, ...]) -> Capture:
        graph, model = made.graph, made.model
        interface = signature(model)
        used = {value.name for value in model.graph.inputs if value.uses() or value.is_graph_output()}
        notes = [*self.torch_model.notes, *graph.notes]
        if self.was_training:
            notes.insert(0, "the module was in training mode; it was exported in evaluation mode and put back")
        notes += [*random_nodes(model), *plugins.notes(model, made.written.files, verified=made.verification.equal)]
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

    def _result(self, parts: tuple[Part, ...], made: Made) -> Result:
        verification, written = made.verification, made.written
        report = Report(
            command="export",
            verdict=verdict(verification, asked=self.settings.verify),
            headline=f"{self.target} → {next(iter(written.files), 'nothing written')}: {ending(verification)}",
            parts=parts,
            problems=problems(verification, asked=self.settings.verify),
        )
        path = Path(next(iter(written.files))) if written.files else None
        model = plugins.bare(made.model)
        return Result(report, model if report.verdict is Verdict.DONE else None, path)


def _check_moved(verification: Verification, given: Signature) -> None:
    """Refuses a trace of one size that was not held to the module at another."""
    still = [symbol for symbol, seen in (verification.sizes or {}).items() if len(seen) < 2]
    if not still:
        return
    said = Problem(
        "export/frozen-axis",
        f"the trace was checked at one size of {', '.join(still)} only",
        why="such a trace has what it saw at the example's sizes; only a run at others shows that it follows",
        fix="leave that axis out of --dynamic, or give an example that lets it move; or accept it with --strategy",
    )
    named = [(port.name, axis, dim) for port in given.inputs for axis, dim in enumerate(port.shape or ())]
    raise FrozenAxisError(said, [(name, axis) for name, axis, dim in named if dim in still])


def _needs_verification(strategy: Strategy) -> OnnxsmithError:
    return problem(
        "export/unverified-trace",
        f"{strategy.title} is not tried without verification",
        why="it fixes what it sees in the example, and only the check at other values and sizes shows where",
        fix="leave out --no-verify, or ask for it with --strategy",
    )


def _left_fixed(probed: Probed, left: Probed, found: Problem) -> str:
    """What is told of the axes that are not dynamic any more."""
    lost = ", ".join(symbol for symbol in probed.symbols if symbol not in left.symbols)
    return f"{lost} left fixed: {found.what}" + (f" ({found.where})" if found.where else "")


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
