"""Defines one side of a comparison by layer: its outline and the values of its tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from onnxsmith.graph.structure.signature import Signature
from onnxsmith.runtimes.base import Array, Feeds, Value
from onnxsmith.verification.by_layer.side_outline import Outline, Step
from onnxsmith.verification.rounding import Rounding

if TYPE_CHECKING:
    from onnxsmith.verification.by_layer.loop_divergence import Inner

Values = dict[str, Value]


class Tap(ABC):
    """Gives access to the tensors of one side of a comparison. A context manager; closing twice is allowed."""

    label: str
    signature: Signature
    outline: Outline
    notes: tuple[str, ...] = ()
    can_force: bool = True
    """Whether `forced` can compute from given values."""
    quantises: bool = False
    """Whether the side computes on quantised values."""
    scales: dict[str, float] | None = None
    """Holds the root mean squares of the tensors known so far, if this side quantises and the other does not."""

    @abstractmethod
    def values(self, feeds: Feeds, names: Collection[str]) -> Values:
        """Returns the values of `names`, in one run on the feeds."""

    @abstractmethod
    def forced(self, feeds: Feeds, given: Mapping[str, Value], names: Collection[str]) -> Values:
        """Returns the values of `names`, in one run, each computed from the nearest earlier tensors in `given`. A
        requested tensor is computed even if it is given."""

    @abstractmethod
    def exact(self, feeds: Feeds, given: Mapping[str, Value], name: str) -> Value:
        """Computes one tensor like `forced`, with every float in float64. Returns None if this is impossible."""

    def expect_exact(self) -> None:  # noqa: B027 — some sides need nothing for it
        """Starts in the background whatever `exact` needs, because a call of `exact` follows soon."""

    @abstractmethod
    def roundings(self, cuts: Collection[str], names: Collection[str]) -> Mapping[str, Rounding]:
        """Returns the allowed difference of two correct computations of each of `names`, if both begin at the same
        `cuts`. Names that the side cannot judge are left out."""

    def inside(self, feeds: Feeds, given: Mapping[str, Value], name: str) -> Sequence[Inner]:
        """Returns the values in the bodies of the steps before `name` in each iteration, computed from `given`. Empty
        if there are no bodies, or if they cannot be exposed."""
        return ()

    def weights(self, step: Step) -> list[Array]:
        """Returns the weights of a step: float constants that the step reads, or from which its operands are
        computed."""
        return []

    def nbytes(self, feeds: Feeds) -> Mapping[str, int]:
        """Returns bytes of the side's tensors on these feeds, as far as their shapes are known."""
        return {}

    def close(self) -> None:  # noqa: B027 — some sides hold no resources
        """Frees the side's resources."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
