"""One export from module to file: capture, simplify, write aside, verify that very file, move it into place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir

from onnxsmith.clock import Clock, stage
from onnxsmith.comparison.rounding import roundings
from onnxsmith.comparison.verify import Plan, Side, verify
from onnxsmith.exporter import capture as capturing
from onnxsmith.exporter import dynamic as dynamic_axes
from onnxsmith.exporter import program as programs
from onnxsmith.exporter.settings import Settings
from onnxsmith.feeds.generate import Feed, Generator
from onnxsmith.model import opset, shapes
from onnxsmith.model.check import check
from onnxsmith.model.load import load
from onnxsmith.model.save import Stage, staged
from onnxsmith.model.signature import Port, signature
from onnxsmith.problem import Problem
from onnxsmith.report.base import Report, Verdict
from onnxsmith.report.parts.capture import Capture, PortMap
from onnxsmith.report.parts.simplification import Simplification
from onnxsmith.report.parts.timing import Timing
from onnxsmith.report.parts.verification import Verification, nothing_verified
from onnxsmith.report.parts.written import Written
from onnxsmith.result import Result
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram
from onnxsmith.simplifier.simplify import simplified
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


@dataclass
class Job:
    """What one export works on."""

    target: str
    torch_model: factory.TorchModel
    settings: Settings
    was_training: bool

    def run(self, output: str | Path | None, clock: Clock) -> Result:
        """Does it; `clock` is the running one, for the report."""
        with stage("run eagerly"):
            axes = dynamic_axes.parse(self.settings.dynamic)
            program, example = programs.build(
                self.torch_model,
                axes,
                input_names=self.settings.input_names,
                output_names=self.settings.output_names,
            )
        with stage("capture"):
            graph = capturing.capture(program, example, self.settings.opset)
        model, simplification = graph.model, None
        if self.settings.simplify:
            with stage("simplify"):
                model, simplification = simplified(graph.model)
        program = capturing.with_shapes(program, model)
        part = self._captured(graph, program, model)
        if output is None:
            check(model, where="the exported model")
            verification = self._verify(program, example, model)
            written = Written({}, "no output was asked for")
        else:
            with staged(output) as target:
                verification, written = self._write(program, example, model, target)
        return self._report(part, simplification, verification, written, clock, model)

    def _write(
        self, program: TorchProgram, example: capturing.Arrays, model: ir.Model, target: Stage
    ) -> tuple[Verification, Written]:
        with stage("save"):
            target.write(model, external_data=self.settings.external_data)
            check(load(target.path), where="the exported model")
        verification = self._verify(program, example, target.path)
        if self.settings.verify and not verification.equal:
            return verification, Written({}, "the exported model differs from the torch module")
        with stage("save"):
            return verification, Written({str(file): file.stat().st_size for file in target.commit()})

    def _verify(self, program: TorchProgram, example: capturing.Arrays, candidate: Path | ir.Model) -> Verification:
        if not self.settings.verify:
            return nothing_verified("PyTorch, eager", "the exported model", "--no-verify was given")
        name = self.settings.runtime or runtimes.default()
        with stage("shapes"):
            inferred, _ = shapes.inferred(load(candidate))
            sizes = {
                dim: size
                for port in program.signature.inputs
                for dim, size in zip(port.shape or (), example[port.name].shape, strict=True)
                if isinstance(dim, str)
            }
            generator = replace(Generator.for_model(inferred), signature=program.signature, examples=dict(example))
            plan = Plan(
                generator,
                given=(Feed("the example", sizes, dict(example)),),
                start=sizes,
                seed=self.settings.seed,
            )
        with stage("verify"), TorchEager().prepare(program) as a, runtimes.get(name).prepare(candidate) as b:
            reference = Side("PyTorch, eager, on the CPU", a)
            return verify(reference, Side(f"the exported model on {name} ({b.provider})", b), plan, roundings(inferred))

    def _captured(self, graph: capturing.Graph, program: TorchProgram, model: ir.Model) -> Capture:
        used = {value.name for value in model.graph.inputs if value.uses() or value.is_graph_output()}
        notes = list(graph.notes)
        if self.was_training:
            notes.insert(0, "the module was in training mode; it was exported in evaluation mode and put back")
        leaves = zip(program.names, program.leaves, strict=True)
        constants = tuple(repr(leaf) for name, leaf in leaves if name is None and leaf is not None)
        return Capture(
            target=self.target,
            how=graph.how,
            inputs=tuple(_port_map(port, port.name in used) for port in signature(model).inputs),
            outputs=tuple(_port_map(port, True) for port in signature(model).outputs),
            constants=constants,
            opset_asked=self.settings.opset,
            opset_got=opset.of(model),
            opset_how=graph.opset_how,
            ir_version=model.ir_version,
            captured_sizes=graph.sizes,
            notes=tuple(notes),
            tried=tuple(f"{failure.what}: {failure.why}" for failure in graph.failures),
        )

    def _report(
        self,
        part: Capture,
        simplification: Simplification | None,
        verification: Verification,
        written: Written,
        clock: Clock,
        model: ir.Model,
    ) -> Result:
        agrees = verification.equal or not self.settings.verify
        if not verification.verified:
            end = "NOT VERIFIED"
        else:
            end = f"{'verified' if verification.equal else 'DIFFERENT'} on {len(verification.runs)} inputs"
        report = Report(
            command="export",
            verdict=Verdict.DONE if agrees else Verdict.DIFFERENT,
            headline=f"{self.target} → {next(iter(written.files), 'nothing written')}: {end}",
            parts=tuple(p for p in (part, simplification, verification, written, Timing(dict(clock.seconds))) if p),
            problems=() if agrees else (_different(verification),),
        )
        path = Path(next(iter(written.files))) if written.files else None
        return Result(report, model if agrees else None, path)


def _port_map(port: Port, used: bool) -> PortMap:
    dims = list(enumerate(port.shape or ()))
    return PortMap(
        name=port.name,
        argument=port.name,
        dtype=port.dtype,
        shape=port.shape or (),
        dynamic=tuple(f"{axis}={dim}" for axis, dim in dims if isinstance(dim, str)),
        fixed=tuple(f"{axis}={dim}" for axis, dim in dims if isinstance(dim, int)),
        used=used,
    )


def _different(verification: Verification) -> Problem:
    bad = next((output for output in verification.outputs if not output.equal), None)
    return Problem(
        "verify/different",
        f"output {bad.name!r} differs: {bad.reason}"
        if bad
        else f"the interface differs: {'; '.join(verification.notes)}",
        where=bad.where if bad else "",
        why="the exported graph does not compute what the module computes on this input",
        fix="nothing was written; `onnxsmith explain verify/different` lists the usual causes",
    )
