"""Compares the two sides of `compare`, and derives further comparisons that may show more."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

from onnxsmith.base.clock import stage
from onnxsmith.base.report.parts.verification import Verification
from onnxsmith.comparison.outputs.candidate_state import Recorder
from onnxsmith.comparison.outputs.comparison_setup import Compared, evidence, from_graphs
from onnxsmith.comparison.outputs.sides import SideSource, renamed, under
from onnxsmith.graph.structure.signature import signature
from onnxsmith.runtimes.base import Options
from onnxsmith.runtimes.torch_eager import TorchProgram, in_single
from onnxsmith.verification import intermediate_outputs, single_precision
from onnxsmith.verification.explore import Run
from onnxsmith.verification.inputs.generate import Feed
from onnxsmith.verification.ladder import Subject, shows_too_little
from onnxsmith.verification.rounding import roundings
from onnxsmith.verification.verify import Side, verify

if TYPE_CHECKING:
    from onnxsmith.verification.by_layer.part_verification import Inside


@dataclass
class TwoSides(Subject):
    """The two sides of a comparison. After the comparison, `worst` holds the input of the largest difference, `runs`
    those of the reference, and `recorder` the differences."""

    read: Compared
    worst: list[Feed] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    recorder: Recorder = field(default_factory=Recorder)

    @property
    def seed(self) -> int:
        """The seed of the generated inputs."""
        return self.read.plan.seed

    def verified(self, sides: tuple[Side, Side], probes: ExitStack) -> Verification:
        """Compares the prepared sides. Their probes end with `probes`."""
        read = self.read
        means = evidence(read, probes)
        return verify(
            *sides,
            read.plan,
            read.tolerances,
            means,
            self.worst.append,
            on_run=self.runs.append,
            on_compared=self.recorder,
        )

    def compared(self) -> Verification:
        """Compares the sides, and closes both."""
        a, b = self.read.a, self.read.b
        a.join(b)
        try:
            with stage("verify"), a.prepare() as first, b.prepare() as second, ExitStack() as probes:
                sides = Side(a.label, first), Side(b.label, under(second, b.interface, a.interface))
                return self.verified(sides, probes)
        finally:
            a.close()
            b.close()

    def plain(self) -> Self | None:
        """Returns the sides without the runtimes' optimisations, where a fault that rounding hides may show."""
        plain = unoptimised(self.read)
        return None if plain is None else type(self)(plain)

    def opened(self) -> Self | None:
        """Returns two graphs with common intermediate tensors as outputs, without the runtimes' optimisations."""
        read = self.read
        if read.a.model is None or read.b.model is None or read.tolerance is not None:
            return None
        pair = intermediate_outputs.with_common_tensors(read.a.model, read.b.model)
        if pair is None:
            return None
        plain = Options(optimization="disable")
        a, b = (
            replace(
                one,
                source=model,
                model=model,
                interface=signature(model),
                options=plain if "disable" in one.runtime.levels and not one.runtime.chosen else one.options,
            )
            for one, model in zip((read.a, read.b), pair, strict=True)
        )
        return type(self)(replace(read, a=a, b=b, tolerances=roundings(pair[0]) | dict(read.tolerances)))

    def seeded(self, seed: int) -> Self | None:
        """Returns the sides on the generated inputs of another seed. None for calls in a row, because their inputs are
        those of the steps."""
        read = self.read
        if not read.plan.generate or read.calls is not None or self._has_inside:
            return None
        own = replace(read, a=replace(read.a), b=replace(read.b))  # with processes of their own, which are closed
        return type(self)(replace(own, plan=replace(read.plan, seed=seed)))

    def overrules(self, found: Verification) -> bool:
        """Whether the doubt is about the inputs, and not about weights or nodes that differ."""
        return shows_too_little(found)

    def adopt(self, other: Self) -> None:
        """Takes over the worst input, the runs and the differences."""
        self.worst, self.runs, self.recorder = other.worst, other.runs, other.recorder

    def single(self) -> Subject | None:
        """Returns the sides in float32."""
        copies = single(self.read)
        return None if copies is None else type(self)(copies)

    def inside(self) -> Inside | None:
        """Compares tensors inside a torch module with those of a file."""
        a, b = self.read.a, self.read.b
        if not self._has_inside or not isinstance(a.source, TorchProgram) or b.model is None:
            return None
        from onnxsmith.exporter.inner_tensors import inside

        return inside(a.source, a.example, b.model, (b.runtime, b.options), self.runs, self.seed)

    @property
    def _has_inside(self) -> bool:
        """Whether the sides are a module and a file with the same names, called once, without a tolerance of the
        user's."""
        read, a, b = self.read, self.read.a, self.read.b
        if not isinstance(a.source, TorchProgram) or a.exported is not None or b.model is None:
            return False
        names = renamed(b.interface, a.interface)
        return read.tolerance is None and read.calls is None and all(own == name for own, name in names.items())


def unoptimised(read: Compared) -> Compared | None:
    """Returns the comparison without the runtimes' optimisations; None if a side has no levels, or the user chose
    one."""
    if any(
        side.model is None or side.options != Options() or side.runtime.chosen or "disable" not in side.runtime.levels
        for side in (read.a, read.b)
    ):
        return None
    a, b = (replace(side, options=Options(optimization="disable")) for side in (read.a, read.b))
    return replace(read, a=a, b=b)


def single(read: Compared) -> Compared | None:
    """Returns the comparison of float32 copies. None if there are none, if the user chose a tolerance, or if both sides
    are one file, because then the runtimes' kernels of the narrow dtype are compared.

    Raises:
        OnnxsmithError: `runtime/failed` if a torch module cannot be copied.
    """
    if read.tolerance is not None or read.a.source == read.b.source:
        return None
    a, b = _copy(read.a), _copy(read.b)
    if a is None or b is None:
        return None
    tolerances, generator, coarser, few_steps = from_graphs(a, b)
    plan = replace(read.plan, generator=generator, given=single_precision.feeds_of(read.plan.given))
    return replace(
        read, a=a, b=b, plan=plan, tolerances=tolerances, coarser=coarser, few_steps=few_steps, notes=(), clauses=()
    )


def _copy(side: SideSource) -> SideSource | None:
    if isinstance(side.source, TorchProgram):
        program = in_single(side.source)
        program = replace(program, signature=single_precision.signature_of(program.signature))
        example = single_precision.values_of(side.example)
        return replace(side, source=program, interface=program.signature, example=example)
    copy = None if side.model is None else single_precision.single(side.model)
    if copy is None:
        return None
    return replace(side, source=copy, model=copy, interface=single_precision.signature_of(side.interface))
