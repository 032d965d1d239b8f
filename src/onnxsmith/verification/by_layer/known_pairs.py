"""What is known of two graphs before they run: which of their tensors correspond, and how their nodes differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

STRONG = ("attribute", "operator", "weight")
"""Differences that change what a node computes from the same inputs."""


@dataclass(frozen=True)
class NodeDifference:
    """How a node of the candidate differs from its counterpart: one attribute, weight, operand, or the node itself.

    `node` is the candidate's name, `reference` the name of its counterpart, "" without one. `what` is `attribute`,
    `operator`, `weight`, `wiring`, `added` (the candidate has the node alone) or `removed` (the node reads what in the
    reference a node computes that the candidate does not have). `name` is that of the attribute, weight or operand,
    and `old` and `new` are its values in both models, as texts.
    """

    node: str
    reference: str
    what: str
    name: str
    old: str
    new: str

    def said(self) -> str:
        """The difference as a text: `epsilon 1e-05 → 0.001`."""
        if self.what == "added":
            return f"{self.name} is in the candidate alone"
        if self.what == "removed":
            return f"reads {self.new} where the reference reads {self.old}"
        return f"{self.name} {self.old} → {self.new}".strip()


@dataclass(frozen=True)
class Matches:
    """Pairs of tensors, the reference's name first, and the differences of paired nodes. `folded` are pairs in which
    the tensor has the value of another one than its name says: what followed its node is folded into the weights."""

    tensors: tuple[tuple[str, str], ...] = ()
    folded: tuple[tuple[str, str], ...] = ()
    differences: tuple[NodeDifference, ...] = ()

    @cached_property
    def by_node(self) -> Mapping[str, tuple[NodeDifference, ...]]:
        """The differences by the candidate's node."""
        return _grouped(self.differences)


def _grouped(differences: Iterable[NodeDifference]) -> dict[str, tuple[NodeDifference, ...]]:
    found: dict[str, list[NodeDifference]] = defaultdict(list)
    for one in differences:
        found[one.node].append(one)
    return {name: tuple(group) for name, group in found.items()}
