"""One side of a comparison by layer: what it is made of, and the values of its tensors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Self

from onnxsmith.comparison.rounding import Rounding
from onnxsmith.layers.loop_divergence import Inner
from onnxsmith.layers.outline import Outline, Step
from onnxsmith.model.graph.signature import Signature
from onnxsmith.runtimes.base import Array, Feeds, Value

Values = dict[str, Value]


class Tap(ABC):
    """A side whose tensors can be looked at. A context manager; closing twice is fine."""

    label: str
    signature: Signature
    outline: Outline
    notes: tuple[str, ...] = ()
    can_force: bool = True
    """Whether `forced` does anything."""
    quantises: bool = False
    """Whether it computes in a few steps what it could compute in floats."""
    scales: dict[str, float] | None = None
    """Where it quantises and the other side does not: root mean squares of its tensors, as they become known."""

    @abstractmethod
    def values(self, feeds: Feeds, names: Collection[str]) -> Values:
        """The tensors `names`, in one run on the feeds."""

    @abstractmethod
    def forced(self, feeds: Feeds, given: Mapping[str, Value], names: Collection[str]) -> Values:
        """The tensors `names`, each computed from the nearest tensors before it that are `given`, in one run. One
        that is given and asked for is computed all the same, for itself."""

    @abstractmethod
    def exact(self, feeds: Feeds, given: Mapping[str, Value], name: str) -> Value:
        """As `forced`, for one tensor, with every float in float64. None where that cannot be had."""

    @abstractmethod
    def roundings(self, cuts: Collection[str], names: Collection[str]) -> Mapping[str, Rounding]:
        """How far apart two right computations of each of `names` may be that begin at the same `cuts`; none for what
        the side cannot tell."""

    def inside(self, feeds: Feeds, given: Mapping[str, Value], name: str) -> Sequence[Inner]:
        """What the bodies of the steps before `name` compute in each iteration, from `given` on; nothing where there
        are none, or they cannot be looked into."""
        return ()

    def weights(self, step: Step) -> list[Array]:
        """What a step has learned: the constants of floats that it reads, or that those were made of."""
        return []

    def nbytes(self, feeds: Feeds) -> Mapping[str, int]:
        """Bytes of its tensors on these feeds, of those whose shapes are known."""
        return {}

    def close(self) -> None:  # noqa: B027 — some hold nothing to let go of
        """Lets go of what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
