"""Compares a module with its graph: prepares both sides and their further comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import onnx_ir as ir

from onnxsmith.base.clock import stage
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.base.settings import Verify
from onnxsmith.exporter.graph import program_capture as capturing
from onnxsmith.exporter.inputs import module_program as programs
from onnxsmith.exporter.inputs.state_pairs import Carried
from onnxsmith.exporter.levels import AtLevels
from onnxsmith.exporter.module import called_paths
from onnxsmith.graph.files.load import load
from onnxsmith.graph.shapes.symbolic_inference import inferred
from onnxsmith.graph.structure import dim_relations
from onnxsmith.runtimes import base as runtimes
from onnxsmith.runtimes.torch_eager import TorchEager, TorchProgram, in_double, in_single
from onnxsmith.verification import free_values, runtime_choice
from onnxsmith.verification.arbiter import Arbiter
from onnxsmith.verification.budget import Budget
from onnxsmith.verification.explore import Plan, Run
from onnxsmith.verification.inputs import user_inputs
from onnxsmith.verification.inputs.generate import Feed, Generator
from onnxsmith.verification.inputs.size_proposals import of_feed
from onnxsmith.verification.ladder import Subject
from onnxsmith.verification.rounding import Rounding, asked, roundings
from onnxsmith.verification.runtime_choice import RuntimeChoice

if TYPE_CHECKING:
    from onnxsmith.verification.by_layer.part_verification import Inside


@dataclass
class ModuleAndGraph(Subject):
    """A module and its graph. `choice` is the runtime of the graph. After the comparison, `left_out` names the inputs
    that were left out, and `runs` are the runs of the module."""

    built: programs.Built
    program: TorchProgram
    candidate: Path | ir.Model
    settings: Verify
    carried: Carried
    shaped: ir.Model
    plan: Plan
    tolerances: Mapping[str, Rounding]
    choice: RuntimeChoice
    by_standard: bool = False
    """Whether the reference evaluator judges a graph that the usual runtime refuses, or on which it fails."""
    is_copy: bool = False
    """Whether this compares float32 copies for another comparison, which compares the intermediate tensors itself."""
    runs: list[Run] = field(default_factory=list)
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        built: programs.Built,
        candidate: Path | ir.Model,
        settings: Verify,
        carried: Carried,
        *,
        by_standard: bool = False,
        is_copy: bool = False,
        is_traced: bool = False,
    ) -> Self:
        """Prepares the comparison of a module with the graph `candidate`. `carried` is the state of the graph.
        `is_traced` says that values of the example may be constants in the graph."""
        program = capturing.with_shapes(built.program, load(candidate))
        with stage("shapes"):
            shaped, _ = inferred(load(candidate))
            tolerances = roundings(shaped)
            if settings.tolerance is not None:
                tolerances = {output: asked(settings.tolerance) for output in tolerances}
            plan = _plan(built, program, shaped, settings, is_traced=is_traced)
        choice = RuntimeChoice(settings.runtime or runtimes.default())
        return cls(built, program, candidate, settings, carried, shaped, plan, tolerances, choice, by_standard, is_copy)

    @property
    def seed(self) -> int:
        """The seed of the generated inputs."""
        return self.plan.seed

    @property
    def has_inside(self) -> bool:
        """Whether the intermediate tensors may be compared: not if the user gave a tolerance, or if the graph has a
        state."""
        return not self.carried.initial and self.settings.tolerance is None

    def compared(self) -> Verification:
        """Compares the two on the usual runtime, or else on the next runtime that accepts the graph."""
        arbiter = Arbiter(lambda: TorchEager().prepare(in_double(self.program)))
        with stage("verify"), called_paths.Reference(self.program) as reference:

            def on(name: str) -> Verification:
                self.runs.clear()
                feeding = None
                if self.carried.initial:
                    from onnxsmith.exporter.state.state_feeding import Feeding

                    feeding = Feeding(self.carried, reference.program)
                sized = partial(_sized, self.shaped)
                budget = Budget(thorough=self.settings.thorough)
                sides = AtLevels(name, reference, self.candidate, self.tolerances, arbiter, sized, feeding, budget)
                found = sides.compared(self.plan, self.runs)
                failure = sides.answers.none
                if self.by_standard and failure is not None and failure.id in runtime_choice.FAILS:
                    raise runtime_choice.FailsError(failure, failure)
                return found

            found, self.choice = runtime_choice.judged(
                self.settings.runtime, [self.candidate], on, by_standard=self.by_standard
            )
        self.left_out = reference.untried
        return found

    def seeded(self, seed: int) -> Self | None:
        """Returns the comparison on the inputs generated from another seed, and on the examples."""
        if self.has_inside:
            return None
        return replace(self, plan=replace(self.plan, seed=seed), runs=[], left_out=())

    def adopt(self, other: Self) -> None:
        """Takes over the inputs that were left out."""
        self.left_out = other.left_out

    def single(self) -> Subject | None:
        """Returns the comparison of float32 copies of module and graph."""
        from onnxsmith.verification import single_precision

        copy = single_precision.single(load(self.candidate)) if self.has_inside else None
        if copy is None:
            return None
        program = in_single(self.built.program)
        program = replace(program, signature=single_precision.signature_of(program.signature))
        more = tuple(single_precision.values_of(values) for values in self.built.more)
        example = single_precision.values_of(self.built.example)
        built = replace(self.built, program=program, example=example, more=more)
        return type(self).of(
            built,
            copy,
            self.settings,
            self.carried,
            by_standard=self.by_standard,
            is_copy=True,
            is_traced=self.plan.given[0].is_traced,
        )

    def inside(self) -> Inside | None:
        """Compares the intermediate tensors."""
        if not self.has_inside or self.is_copy:
            return None
        runtime = runtimes.parse(self.choice.runtime)
        graph = load(self.candidate)
        from onnxsmith.exporter import inner_tensors

        return inner_tensors.inside(self.program, self.built.example, graph, runtime, self.runs, self.seed)


def _sized(shaped: ir.Model, sizes: Mapping[str, int]) -> Mapping[str, Rounding]:
    return roundings(shaped, sizes=sizes)


def _plan(built: programs.Built, program: TorchProgram, shaped: ir.Model, settings: Verify, *, is_traced: bool) -> Plan:
    """Plans the inputs: the examples, and generated inputs like them."""
    generator = Generator.for_model(shaped)
    interface = program.signature.related(dim_relations.relations(shaped))
    generator = replace(
        generator,
        signature=interface,
        examples=built.example,
        numbers=generator.numbers.with_more(built.numbers),
    )
    sizes = of_feed(interface, built.example)
    example = Feed("the example", sizes, dict(built.example), is_traced=is_traced)
    more = [
        Feed(f"example {number}", of_feed(interface, values), dict(values))
        for number, values in enumerate(built.more, 2)
    ]
    return Plan(
        generator,
        (example, *more),
        known={name: size for name, size in user_inputs.sizes(settings.sizes).items() if isinstance(size, int)},
        start=sizes,
        seed=settings.seed,
        random=True,
        turned=built.turned,
        free=free_values.of_model(shaped).joined(free_values.read(settings.free)),
    )
