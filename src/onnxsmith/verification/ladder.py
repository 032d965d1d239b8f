"""Makes further comparisons, in a fixed order, if a comparison is unsure.

Each way to verify is a `Subject`, which compares and offers further comparisons. A `Rung` decides when a further
comparison is worth its cost, which doubts its result settles, and what the report says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Self

from onnxsmith.base.problem import OnnxsmithError
from onnxsmith.base.report.parts.verification import Verification

if TYPE_CHECKING:
    from onnxsmith.verification.by_layer.part_verification import Inside

SEEDS = 3
"""Counts the seeds whose inputs are tried until a check decides. A choice: inputs of another seed may meet a threshold
that these miss."""
_LONG = 200
"""Limits the characters of an error in a note. A choice."""


class Subject(ABC):
    """Makes a comparison that can also be made in other ways. A method that a subject does not override offers no
    further comparison."""

    @property
    def seed(self) -> int:
        """Returns the seed of the generated inputs."""
        return 0

    @abstractmethod
    def compared(self) -> Verification:
        """Compares the two sides.

        Raises:
            OnnxsmithError: the errors of `verify`.
        """

    def plain(self) -> Self | None:
        """Returns the comparison without the runtimes' optimisations. Returns None if this comparison is made without
        optimisations, or if the user chose the runtime's options."""
        return None

    def opened(self) -> Self | None:
        """Returns the comparison with common intermediate tensors as further outputs. Returns None without common
        tensors, or if the user gave a tolerance, which does not apply to intermediate tensors."""
        return None

    def seeded(self, seed: int) -> Self | None:
        """Returns the comparison on the inputs of another seed. Returns None if no inputs are generated, or if
        intermediate tensors can be compared, because these show more than other inputs."""
        return None

    def single(self) -> Subject | None:
        """Returns the comparison of float32 copies. Returns None if there are none, or if the user gave a tolerance."""
        return None

    def inside(self) -> Inside | None:
        """Compares the intermediate tensors, each computed from the reference's values. Returns None if the tensors
        cannot be paired. May raise any exception, because a traced operation may."""
        return None

    def overrules(self, found: Verification) -> bool:
        """Whether agreement on other inputs settles the doubts in `found`. It settles nothing if `found` names a
        difference of the two sides."""
        return True

    def adopt(self, other: Self) -> None:
        """Takes over the attributes of `other`, because the result of `other` counts now."""
        return


class Rung(ABC):
    """Makes one further comparison."""

    name: ClassVar[str]

    @abstractmethod
    def applies(self, subject: Subject, found: Verification) -> bool:
        """Whether the rung may settle the doubts in `found`."""

    @abstractmethod
    def climb(self, subject: Subject, found: Verification) -> Verification:
        """Returns the result with the rung's findings; `found` itself if they decide nothing."""


class OtherLevel(Rung):
    """Compares without the runtimes' optimisations, where kernels differ least.

    Applies to every doubt, also to a difference that only optimised kernels hide or show. It costs one more comparison
    on the same inputs. If this comparison agrees, its result replaces the first one, because this comparison plants
    faults too."""

    name = "the other optimisation level"

    def applies(self, subject: Subject, found: Verification) -> bool:
        return True

    def climb(self, subject: Subject, found: Verification) -> Verification:
        plain = subject.plain()
        other = None if plain is None else plain.compared()
        if other is None or not other.equal:
            return found
        note = (
            f"with the runtime's optimisations on, the check cannot decide ({found.unsure[0]}); without the "
            "optimisations it can"
        )
        return replace(other, notes=(*other.notes, note))


class IntermediateTensors(Rung):
    """Compares again with intermediate tensors as outputs, because a network may lose the results of its first layers.

    Applies if planted faults move the outputs but too few are seen. It costs one comparison with up to 64 more outputs.
    If all these tensors agree, the faults seen at these tensors count.
    """

    name = "intermediate tensors"

    def applies(self, subject: Subject, found: Verification) -> bool:
        return found.power is not None and not found.power.still

    def climb(self, subject: Subject, found: Verification) -> Verification:
        opened = subject.opened()
        other = None if opened is None else opened.compared()
        if other is None or not other.equal:
            return found
        extra = len(other.outputs) - len(found.outputs)
        note = f"the outputs alone show too little ({found.unsure[0]}): {extra} intermediate tensors also agree"
        return replace(found, equal=True, unsure=(), power=other.power, notes=(*found.notes, note))


class OtherSeeds(Rung):
    """Compares on inputs of other seeds, because inputs may miss a threshold that others meet.

    Applies to every doubt. It costs up to two more comparisons, each with the rungs before this one. A difference
    always counts. Agreement counts only if the doubt is about the inputs, not about a difference that was found.
    """

    name = "inputs of other seeds"

    def applies(self, subject: Subject, found: Verification) -> bool:
        return True

    def climb(self, subject: Subject, found: Verification) -> Verification:
        for seed in range(subject.seed + 1, subject.seed + SEEDS):
            other = subject.seeded(seed)
            if other is None:
                return found
            told = climbed(other, other.compared(), _before(self))
            if told.differs or (told.equal and subject.overrules(found)):
                subject.adopt(other)
                note = f"the inputs of seed {subject.seed} show too little, so those of seed {seed} were used"
                return replace(told, notes=(*told.notes, note))
        return found


class InFloat32(Rung):
    """Compares float32 copies, because a sum of float16 numbers is rounded to three digits, which hide a fault of 1%.

    Applies if the outputs agree and too few planted faults are seen. It costs a comparison of the copies, with the
    rungs before this one. Models of one function agree in float32 as well. Faults of the narrow dtype itself, such as
    an overflow or a missing Cast, show in the comparison of the models themselves.
    """

    name = "float32 copies"

    def applies(self, subject: Subject, found: Verification) -> bool:
        return shows_too_little(found)

    def climb(self, subject: Subject, found: Verification) -> Verification:
        copies = subject.single()
        wide = None if copies is None else climbed(copies, copies.compared(), _before(self))
        if wide is None or not wide.equal:
            return found
        note = (
            f"in the models' own precision, {found.unsure[0]}; in float32 it would have been seen, and "
            "float32 copies agree"
        )
        return replace(found, equal=True, unsure=(), power=wide.power, inside=wide.inside, notes=(*found.notes, note))


class TensorsInside(Rung):
    """Compares the intermediate tensors of a module and its file, each computed from the module's own tensors.

    Applies if the outputs agree and too few planted faults are seen. It costs a second trace, and two to five runs of
    each part for each of its weights. The result is equal only if every tensor that both sides have agrees, and planted
    faults in the weights show there. A tensor that differs is named.
    """

    name = "tensors inside"

    def applies(self, subject: Subject, found: Verification) -> bool:
        return shows_too_little(found)

    def climb(self, subject: Subject, found: Verification) -> Verification:
        try:
            inside = subject.inside()
        except Exception as error:  # noqa: BLE001 — an operation of the trace may raise anything; the outputs decide
            return _impossible(self, found, error)
        if inside is None:
            return found
        if inside.apart:
            return replace(found, unsure=(*found.unsure, inside.shortcoming))
        if inside.shortcoming:
            note = f"the intermediate tensors also show too little: {inside.shortcoming}"
            return replace(found, notes=(*found.notes, note))
        note = f"the outputs alone show too little ({found.unsure[0]}); the intermediate tensors show more, and agree"
        notes = (*found.notes, note)
        return replace(found, equal=True, unsure=(), power=inside.power, inside=inside.compared, notes=notes)


RUNGS: tuple[Rung, ...] = (OtherLevel(), IntermediateTensors(), OtherSeeds(), InFloat32(), TensorsInside())
"""Lists the rungs in order. Cheaper rungs come first, and rungs whose models are closer to the two models
themselves."""


def climbed(subject: Subject, found: Verification, rungs: Sequence[Rung] = RUNGS) -> Verification:
    """Returns the comparison `found` of the subject. While the comparison is unsure, adds the findings of the next
    rung. A rung whose comparison fails decides nothing."""
    for rung in rungs:
        if not found.unsure:
            break
        if not rung.applies(subject, found):
            continue
        try:
            found = rung.climb(subject, found)
        except OnnxsmithError as error:
            found = _impossible(rung, found, error)
    return found


def shows_too_little(found: Verification) -> bool:
    """Whether the outputs agree, and the only doubt is that too few planted faults were seen."""
    return found.power is not None and found.unsure == (found.power.shortcoming(),)


def _before(rung: Rung) -> Sequence[Rung]:
    return RUNGS[: RUNGS.index(rung)]


def _impossible(rung: Rung, found: Verification, error: Exception) -> Verification:
    said = error.problem.what if isinstance(error, OnnxsmithError) else " ".join(str(error).split())[:_LONG]
    return replace(found, notes=(*found.notes, f"{rung.name} could not be compared: {said}"))
