"""Pairs tensors of two graphs: those known before a run, and reshaped copies of pairs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from onnxsmith.base.cached_attributes import cached_property
from onnxsmith.verification.by_layer.side_outline import Outline

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
            return f"{self.name} is only in the candidate"
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
        return _by_node(self.differences)


def _by_node(differences: Iterable[NodeDifference]) -> dict[str, tuple[NodeDifference, ...]]:
    found: dict[str, list[NodeDifference]] = defaultdict(list)
    for one in differences:
        found[one.node].append(one)
    return {name: tuple(group) for name, group in found.items()}


_RESHAPING = {
    "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity",
    "aten.view.default", "aten._unsafe_view.default", "aten.reshape.default", "aten.flatten.using_ints",
    "aten.unflatten.int", "aten.unsqueeze.default", "aten.squeeze.default", "aten.squeeze.dim", "aten.squeeze.dims",
    "aten.alias.default", "aten.clone.default", "aten.contiguous.default",
}  # fmt: skip
"""Lists the operators that keep the elements of their first input and their order."""


def is_reshaping(op: str) -> bool:
    """Whether an operator, of ONNX or of PyTorch, keeps the elements of its input and their order."""
    return op in _RESHAPING


def by_reshaping(
    reference: Outline, candidate: Outline, pairs: Mapping[str, str], is_free: Callable[[int, str], bool]
) -> Iterator[tuple[str, str]]:
    """Pairs tensors that are only reshaped from paired tensors, if both sides have equally many of the same shape.
    `pairs` maps the reference's names to the candidate's."""
    ours = _grouped(reference, {a: a for a in pairs}, lambda name: is_free(0, name))
    theirs = _grouped(candidate, {b: a for a, b in pairs.items()}, lambda name: is_free(1, name))
    for key, names in theirs.items():
        if len(ours.get(key, ())) == len(names):
            yield from zip(ours[key], names, strict=True)


Groups = Mapping[tuple[str, tuple[int | None, ...]], list[str]]


def _grouped(outline: Outline, anchors: Mapping[str, str], is_free: Callable[[str], bool]) -> Groups:
    """Groups unpaired tensors by shape and by the anchor from which they are reshaped."""
    groups: dict[tuple[str, tuple[int | None, ...]], list[str]] = defaultdict(list)
    found: dict[str, str] = {}
    for step in outline.steps:
        if step.op not in _RESHAPING or not step.inputs or len(step.outputs) != 1:
            continue
        read, made = step.inputs[0], step.outputs[0]
        anchor = anchors.get(read) or found.get(read)
        if anchor is None:
            continue
        found[made] = anchor
        shape = outline.types[made].shape if made in outline.types else None
        if shape is not None and made not in anchors and is_free(made):
            groups[anchor, shape].append(made)
    return groups
