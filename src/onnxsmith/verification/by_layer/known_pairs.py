"""Holds the facts that are known of two graphs before a run: pairs of tensors, and differences of nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

STRONG = ("attribute", "operator", "weight")
"""Names the kinds of difference that change the result of a node on the same inputs."""


@dataclass(frozen=True)
class NodeDifference:
    """Describes how a node of the candidate differs from its counterpart: one attribute, weight, operand, or the node
    itself.

    `node` is the candidate's name, `reference` the name of its counterpart, "" without a counterpart. `what` is
    `attribute`, `operator`, `weight`, `wiring`, `added` (only the candidate has the node) or `removed` (in the
    reference, this node reads another node, which the candidate lacks). `name` is the name of the attribute, weight or
    operand. `old` and `new` are its values in the reference and in the candidate, as texts.
    """

    node: str
    reference: str
    what: str
    name: str
    old: str
    new: str

    def said(self) -> str:
        """Writes the difference as a text: `epsilon 1e-05 → 0.001`."""
        if self.what == "added":
            return f"{self.name} is in the candidate alone"
        if self.what == "removed":
            return f"reads {self.new} where the reference reads {self.old}"
        return f"{self.name} {self.old} → {self.new}".strip()


@dataclass(frozen=True)
class Matches:
    """Holds pairs of tensors, the reference's name first, and the differences of paired nodes. `folded` are pairs with
    different names: the operation after the tensor's node is folded into its weights, so the tensor has the value of
    the folded operation."""

    tensors: tuple[tuple[str, str], ...] = ()
    folded: tuple[tuple[str, str], ...] = ()
    differences: tuple[NodeDifference, ...] = ()

    @cached_property
    def by_node(self) -> Mapping[str, tuple[NodeDifference, ...]]:
        """Groups the differences by the candidate's node."""
        return _grouped(self.differences)


def _grouped(differences: Iterable[NodeDifference]) -> dict[str, tuple[NodeDifference, ...]]:
    found: dict[str, list[NodeDifference]] = defaultdict(list)
    for one in differences:
        found[one.node].append(one)
    return {name: tuple(group) for name, group in found.items()}
