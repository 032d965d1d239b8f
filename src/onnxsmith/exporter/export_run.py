"""One export: captures the module with the dynamic axes that were asked for, or with those that a graph can have, and
writes the report."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import onnx_ir as ir

from onnxsmith.base.clock import Clock, stage
from onnxsmith.base.problem import OnnxsmithError, Problem
from onnxsmith.base.report.base import Part, Report
from onnxsmith.base.report.parts.capture import Capture, PortMap
from onnxsmith.base.report.parts.written_files import Timing
from onnxsmith.base.report.verdict import Verdict
from onnxsmith.base.result import Result
from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.base.words import first_few
from onnxsmith.exporter import factory
from onnxsmith.exporter.export_settings import Settings
from onnxsmith.exporter.graph import baked_inputs
from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.exporter.inputs import size_ranges
from onnxsmith.exporter.inputs.dynamic_axes_syntax import Asked, is_auto
from onnxsmith.exporter.module import dynamic_axes, one_size_axes, packed_formats
from onnxsmith.exporter.module.dynamic_axes import Probed
from onnxsmith.exporter.strategy_choice import first_that_agrees
from onnxsmith.exporter.strategy_run import Made, Maker
from onnxsmith.exporter.tracing.frozen_axes import FrozenAxisError
from onnxsmith.exporter.translating import custom_operators
from onnxsmith.exporter.translating.missing_operators import UntranslatedError
from onnxsmith.graph.structure import provenance, walk
from onnxsmith.graph.structure.signature import Port, signature
from onnxsmith.graph.surgery import opset_conversion
from onnxsmith.verification.inputs import user_inputs
from onnxsmith.verification.inputs.size_limits import refuse_unknown
from onnxsmith.verification.verification_verdict import ending, verdict


@dataclass
class Job:
    """One export: the module, the settings, and whether the module was in training mode."""

    target: str
    torch_model: factory.TorchModel
    settings: Settings
    was_training: bool

    @property
    def maker(self) -> Maker:
        """Runs the strategies of this export."""
        return Maker(self.target, self.settings)

    def run(self, output: str | Path | BinaryIO | None, clock: Clock) -> Result:
        """Runs the export. `clock` is the running clock; the report shows its stages."""
        with packed_formats.explained(self.torch_model.module):
            return self._run(output, clock)

    def _run(self, output: str | Path | BinaryIO | None, clock: Clock) -> Result:
        with stage("run eagerly"):
            built = self._built({})
            if built.writes and not self.settings.state:
                from onnxsmith.exporter.state import state_handover

                said = state_handover.dropped(self.torch_model)
                self.torch_model = replace(
                    self.torch_model, limits=(*self.torch_model.limits, *([said] if said else []))
                )
            asked = Asked()
            if not is_auto(self.settings.dynamic):
                asked = dynamic_axes.asked(self.settings.dynamic, self.torch_model, built)
                built = self._built(asked.axes, asked.limits) if asked.axes else built
                if self.settings.verify:
                    refuse_unknown(self.settings.verify.sizes, built.program.signature)
                built = replace(built, output_axes=asked.outputs)
        if is_auto(self.settings.dynamic):
            built, made, failures = self._with_most_dynamic_axes(built, output)
        elif asked.optional:
            built, made, failures = self._with_optional_axes(asked, output)
        else:
            try:
                made, failures = first_that_agrees(self.maker, built, output)
            except FrozenAxisError as error:
                from onnxsmith.exporter.tracing.frozen_code import located  # only a failure needs it

                raise located(error, self.torch_model, built, sum(clock.seconds.values())) from error
        part = self._captured(made, built, failures)
        state = self._state(made)
        parts = (part, state, made.simplification, made.verification, made.written, Timing(clock.passed()))
        turns = _unrolled_loop(made, built) if made.verification.differs and made.other_path is None else None
        sizes = one_size_axes.problems(built, made.verification, self._limited()) if made.verification.equal else ()
        return self._result(tuple(p for p in parts if p is not None), made, turns, tuple(sizes))

    def _built(self, axes: programs.Axes, limits: programs.Limits | None = None) -> programs.Built:
        names = {"input_names": self.settings.input_names, "output_names": self.settings.output_names}
        numbers = bool(self.settings.dynamic)
        given = self.settings.verify.sizes if self.settings.verify else ()
        held = size_ranges.merged(limits or {}, self.settings.meant, given, axes)
        built = programs.build(self.torch_model, axes, limits=held, numbers=numbers, **names)
        size_ranges.refuse_example(given, built)
        return built

    def _limited(self) -> Collection[str]:
        """Returns the axes whose sizes the user limits."""
        return user_inputs.sizes(self.settings.verify.sizes) if self.settings.verify else ()

    def _with_optional_axes(
        self, asked: Asked, output: str | Path | BinaryIO | None
    ) -> tuple[programs.Built, Made, tuple[str, ...]]:
        """Exports with the requested axes dynamic. An optional axis that the module fixes becomes fixed."""
        notes: list[str] = []
        while True:
            built = self._built(asked.axes, asked.limits)
            try:
                made, failures = first_that_agrees(self.maker, built, output)
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
        if self.settings.verify:
            refuse_unknown(self.settings.verify.sizes, self._built(probed.axes).program.signature)
        while True:
            built = self._built(probed.axes)
            try:
                made, failures = first_that_agrees(self.maker, built, output)
            except OnnxsmithError as error:
                if not probed.groups or isinstance(error, UntranslatedError) or error.problem.id.startswith("save/"):
                    raise
                frozen = error.axes if isinstance(error, FrozenAxisError) else ()
                left = probed.without(frozen)
                left = left if left != probed else probed.fewer()  # the error names no axis: guess
                notes.append(_left_fixed(probed, left, error.problem))
                probed = left
                continue
            is_final = made.other_path is not None or made.has_wrong_translation
            if made.verification.differs and self.settings.verify and probed.groups and not is_final:
                left = probed.fewer()
                notes.append(
                    _left_fixed(
                        probed,
                        left,
                        Problem(
                            "verify/different",
                            "with dynamic axes, the results of the graph differ from those of the module",
                        ),
                    )
                )
                probed = left
                continue
            return built, replace(made, graph=replace(made.graph, notes=(*notes, *made.graph.notes))), failures

    def _state(self, made: Made) -> Part | None:
        """Returns the report's part on the state of the graph; None if the graph has none."""
        if not self.settings.carried.initial:
            return None
        from onnxsmith.exporter.state import state_handover

        return state_handover.part(made.model, self.settings.carried, steps=made.verification.verified)

    def _captured(self, made: Made, built: programs.Built, failures: tuple[str, ...]) -> Capture:
        graph, model = made.graph, made.model
        interface = signature(model)
        used = {value.name for value in model.graph.inputs if value.uses() or value.is_graph_output()}
        notes = [*self.torch_model.notes, *graph.notes]
        if self.was_training:
            notes.insert(0, "the module was in training mode; it was exported in evaluation mode, then reset")
        notes += [
            *_random_nodes(model),
            *custom_operators.notes(model, made.written.files, verified=made.verification.equal),
        ]
        if built.complexes:
            notes.append(
                f"{', '.join(built.complexes)}: complex in the module; in the graph, a last axis of size 2 holds the "
                "real and the imaginary part"
            )
        packed = packed_formats.note(self.torch_model.module, {node.op_type for node in model.graph})
        notes += [*baked_inputs.notes(built.program), *([packed] if packed else [])]
        if built.output_axes:  # `dynamic_axes` of PyTorch may name outputs
            notes.append(
                f"the name that you gave to an output axis ({', '.join(built.output_axes)}) was not used: the axis "
                "follows from axes of the inputs, and has the name of those"
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

    def _result(self, parts: tuple[Part, ...], made: Made, turns: Problem | None, sizes: tuple[Problem, ...]) -> Result:
        """Returns the result of the export. `turns` is the problem of a loop that may be the cause of a difference.
        `sizes` are the problems of dynamic axes that were shown at one size only."""
        verification, written = made.verification, made.written
        differs = [
            opset_conversion.with_rewritten(one, made.graph.rewritten)
            for one in made.problems(asked=self.settings.verify is not None)
        ]
        limits = "".join(f"; {limit}" for limit in self.torch_model.limits)
        model = custom_operators.bare(made.model)
        said = ending(verification) + limits + (f"; {made.weightless}" if made.weightless else "")
        if not differs and model is not made.model:
            said += _not_run_here(model)
        report = Report(
            command="export",
            verdict=verdict(verification, asked=self.settings.verify is not None),
            headline=f"{self.target} → {next(iter(written.files), 'nothing written')}: {said}",
            parts=parts,
            problems=(*filter(None, [made.other_path, turns]), *made.lost, *differs) if differs else sizes,
            notes=() if differs else tuple(one.what for one in made.lost),
        )
        path = Path(next(iter(written.files))) if written.files else None
        return Result(report, model if report.verdict is Verdict.DONE or path is not None else None, path)


_MOST_NAMED = 3
"""Limits the operators that the headline names. A choice."""


def _not_run_here(model: ir.Model) -> str:
    """Returns the headline's clause on the operators of plugins that no installed runtime runs; "" for none."""
    from onnxsmith.verification.foreign_nodes import foreign_operators

    names = foreign_operators(model)
    return f"; no installed runtime runs the model's operator {first_few(names, _MOST_NAMED)}" if names else ""


def _unrolled_loop(made: Made, built: programs.Built) -> Problem | None:
    """Returns the problem of a Python loop that takes another number of turns at another size than in the graph. None
    for a graph with loops of its own: they may follow the size."""
    if not built.axes or any(node.op_type in ("Loop", "Scan") for node in made.model.graph):
        return None
    from onnxsmith.exporter.tracing.frozen_code import of_turns  # only a failure needs it

    return of_turns(built)


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


_DRAW = {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}


def _random_nodes(model: ir.Model) -> Iterator[str]:
    """Yields a note for each line that draws random numbers."""
    found: dict[str, str] = {}
    for node in walk.all_nodes(model):
        if _draws(node):
            origin = provenance.of(node)
            found.setdefault(origin.source or node.name or node.op_type, origin.op or node.op_type)
    for where, op in found.items():
        yield (
            f"{where}: {op} draws random numbers; the graph draws different numbers from PyTorch, and new numbers "
            "in every run"
        )


def _draws(node: ir.Node) -> bool:
    """Whether the node draws random numbers. A Dropout draws if its third input, `training_mode`, is true."""
    if node.domain or node.op_type != "Dropout":
        return node.op_type in _DRAW and not node.domain
    training = const_tensor(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] else None
    return training is not None and bool(training.numpy())
