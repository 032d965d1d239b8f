"""Pairs tensors that are reshaped copies of paired tensors, such as a `view` on one side, a `Reshape` with other names
on the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from onnxsmith.verification.by_layer.side_outline import Outline

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
