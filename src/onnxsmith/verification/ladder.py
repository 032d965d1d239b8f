"""Goes on where a comparison cannot tell: the further comparisons, in the order in which they are tried.

Each way to verify is a `Subject`: it compares, and it says which further comparisons it can make. The rungs decide when
a further comparison is worth its cost, what its result settles, and how a report says so.
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
"""Seeds whose inputs are tried until a check can tell. A choice: inputs may miss a threshold that others meet."""
_LONG = 200
"""Characters of an error in a note. A choice."""


class Subject(ABC):
    """A comparison that can be made in other ways, too. A way that a subject does not define it cannot serve."""

    @property
    def seed(self) -> int:
        """The seed of the generated inputs."""
        return 0

    @abstractmethod
    def compared(self) -> Verification:
        """Compares the two sides.

        Raises:
            OnnxsmithError: the errors of `verify`.
        """

    def plain(self) -> Self | None:
        """The same comparison without the runtimes' optimisations; None if it is made without them already, or if the
        user chose the runtime's options."""
        return None

    def opened(self) -> Self | None:
        """The same comparison with common intermediate tensors as further outputs; None if there are none, or if the
        user gave a tolerance, which says nothing about them."""
        return None

    def seeded(self, seed: int) -> Self | None:
        """The same comparison on the inputs of another seed; None if no inputs are generated, or if the tensors inside
        can be compared: these show more than other inputs do."""
        return None

    def single(self) -> Subject | None:
        """The comparison of float32 copies; None if there are none, or if the user gave a tolerance."""
        return None

    def inside(self) -> Inside | None:
        """What the tensors inside show, each computed from the reference's own; None if they cannot be paired. May
        raise any exception: a traced operation may."""
        return None

    def overrules(self, found: Verification) -> bool:
        """Whether other inputs on which the sides agree settle what `found` leaves open. Not if it names a difference
        of the two sides."""
        return True

    def adopt(self, other: Self) -> None:
        """Takes over what `other`, whose result counts now, keeps beside its result."""
        return


class Rung(ABC):
    """A further comparison."""

    name: ClassVar[str]

    @abstractmethod
    def applies(self, subject: Subject, found: Verification) -> bool:
        """Whether the rung may decide what `found` leaves open."""

    @abstractmethod
    def climb(self, subject: Subject, found: Verification) -> Verification:
        """The result with what the rung shows; `found` itself if that decides nothing."""


class OtherLevel(Rung):
    """Compares without the runtimes' optimisations, where kernels differ least.

    Applies to every doubt: also to a difference that only optimised kernels hide or show. It costs one more comparison,
    on the same inputs. Agreement there counts in place of the first result, because faults are planted there as well.
    """

    name = "the other optimisation level"

    def applies(self, subject: Subject, found: Verification) -> bool:
        return True

    def climb(self, subject: Subject, found: Verification) -> Verification:
        plain = subject.plain()
        other = None if plain is None else plain.compared()
        if other is None or not other.equal:
            return found
        note = f"with the runtime's optimisations on, the check cannot tell ({found.unsure[0]}); with them off it can"
        return replace(other, notes=(*other.notes, note))


class IntermediateTensors(Rung):
    """Compares again with intermediate tensors as outputs, because a network may lose what its first layers compute.

    Applies if planted faults move the outputs, but too few of them are seen. It costs one comparison
    with up to 64 more outputs. Agreement of all of them adds the faults that are seen there.
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
        note = f"the outputs alone show too little ({found.unsure[0]}): {extra} intermediate tensors agree as well"
        return replace(found, equal=True, unsure=(), power=other.power, notes=(*found.notes, note))


class OtherSeeds(Rung):
    """Compares on inputs of other seeds, because inputs may miss a threshold that others meet.

    Applies to every doubt. It costs up to two more comparisons, each with the rungs before this one. A difference
    counts always; agreement only if the doubt is one about the inputs, and not about a difference that was found.
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
                note = f"the inputs of seed {subject.seed} show too little, those of seed {seed} were used"
                return replace(told, notes=(*told.notes, note))
        return found


class InFloat32(Rung):
    """Compares float32 copies, because a sum of float16 numbers is rounded to three digits, which hide a fault of 1%.

    Applies if the outputs agree and too few planted faults are seen. It costs a comparison of the copies, with the
    rungs before this one. Models of one function agree in float32 as well. What concerns the narrow dtype itself, as an
    overflow or a missing Cast, the comparison of the models themselves shows.
    """

    name = "float32 copies"

    def applies(self, subject: Subject, found: Verification) -> bool:
        return shows_too_little(found)

    def climb(self, subject: Subject, found: Verification) -> Verification:
        copies = subject.single()
        wide = None if copies is None else climbed(copies, copies.compared(), _before(self))
        if wide is None or not wide.equal:
            return found
        note = f"in the models' own precision {found.unsure[0]}; it would have been in float32, and there copies agree"
        return replace(found, equal=True, unsure=(), power=wide.power, inside=wide.inside, notes=(*found.notes, note))


class TensorsInside(Rung):
    """Compares the tensors inside a module with those of its file, each computed from the module's own tensors.

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
            note = f"the tensors inside show too little as well: {inside.shortcoming}"
            return replace(found, notes=(*found.notes, note))
        note = f"the outputs alone show too little ({found.unsure[0]}); the tensors inside show more, and agree"
        notes = (*found.notes, note)
        return replace(found, equal=True, unsure=(), power=inside.power, inside=inside.compared, notes=notes)


RUNGS: tuple[Rung, ...] = (OtherLevel(), IntermediateTensors(), OtherSeeds(), InFloat32(), TensorsInside())
"""Each stands above those that cost less, or that ask less far from the two models themselves."""


def climbed(subject: Subject, found: Verification, rungs: Sequence[Rung] = RUNGS) -> Verification:
    """The comparison `found` of the subject; while it is unsure, with what the next rung shows. A rung whose comparison
    fails decides nothing."""
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
