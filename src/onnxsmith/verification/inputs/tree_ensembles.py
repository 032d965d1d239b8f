"""Reads tree ensembles: the path to each leaf and to each split, as an interval for every feature."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from onnxsmith.graph.structure import walk
from onnxsmith.verification.inputs.columns import Column, origin

KINDS = {"TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor"}
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
_MOST = 1 << 16
"""Limits the splits of one ensemble that are read. A choice: it bounds the memory."""

Box = Mapping[int, tuple[float, float]]
"""Maps each feature to its lowest and highest value along a path through a tree."""


@dataclass(frozen=True)
class Split:
    """Describes a split that a row in `box` reaches; it compares `feature` with `threshold`."""

    box: Box
    feature: int
    threshold: float


@dataclass(frozen=True)
class Ensemble:
    """Holds the trees of one node: the boxes of their leaves, their splits, and the input column of each feature with a
    known origin. `misses` is True if the splits have a branch for missing features."""

    leaves: tuple[Box, ...]
    splits: tuple[Split, ...]
    columns: Mapping[int, Column]
    misses: bool = False


@dataclass(frozen=True)
class _Node:
    feature: int
    mode: str
    threshold: float
    yes: Any
    no: Any


def ensembles(model: ir.Model) -> tuple[Ensemble, ...]:
    """Returns the ensembles of a graph whose features come from inputs."""
    found = (_read(node) for node in walk.all_nodes(model) if node.op_type in KINDS)
    return tuple(one for one in found if one is not None and one.columns)


def thresholds(node: ir.Node) -> Sequence[float]:
    """Returns the thresholds of an ensemble's splits."""
    try:
        found = _floats(node, "nodes_splits" if node.op_type == "TreeEnsemble" else "nodes_values")
    except (KeyError, TypeError):
        return ()
    return [number for number in found if math.isfinite(number)]


def _read(node: ir.Node) -> Ensemble | None:
    try:
        nodes, roots = _tables_of_5(node) if node.op_type == "TreeEnsemble" else _tables(node)
    except (IndexError, KeyError, TypeError, ValueError):
        return None  # a malformed node: the runtime will report it
    leaves: list[Box] = []
    splits: list[Split] = []
    for box, at in _ways(nodes, roots):
        if at is None:
            leaves.append(box)
        else:
            splits.append(Split(box, at.feature, at.threshold))
        if len(splits) >= _MOST:
            break
    features = sorted({split.feature for split in splits})
    columns = {feature: column for feature in features if (column := origin(node.inputs[0], feature)) is not None}
    tracks = node.attributes.get("nodes_missing_value_tracks_true")
    return Ensemble(tuple(leaves), tuple(splits), columns, tracks is not None and any(tracks.as_ints()))


def _tables(node: ir.Node) -> tuple[dict[Any, _Node | None], list[Any]]:
    """Returns nodes by tree and number, with None for leaves, and the root of each tree."""
    held = node.attributes
    trees = held["nodes_treeids"].as_ints()
    keys = list(zip(trees, held["nodes_nodeids"].as_ints(), strict=True))
    values = _floats(node, "nodes_values")
    found: dict[Any, _Node | None] = {}
    roots: dict[int, Any] = {}
    for place, (key, mode) in enumerate(zip(keys, held["nodes_modes"].as_strings(), strict=True)):
        roots.setdefault(key[0], key)
        yes, no = held["nodes_truenodeids"].value[place], held["nodes_falsenodeids"].value[place]
        found[key] = (
            None if mode == "LEAF"
            else _Node(held["nodes_featureids"].value[place], mode, values[place], (key[0], yes), (key[0], no))
        )  # fmt: skip
    return found, list(roots.values())


def _tables_of_5(node: ir.Node) -> tuple[dict[Any, _Node | None], list[Any]]:
    """Returns the same as `_tables` for the operator of ai.onnx.ml version 5, where leaves have their own numbers."""
    held = node.attributes
    modes, splits = held["nodes_modes"].as_tensor().numpy(), _floats(node, "nodes_splits")
    yes, yes_leaf = held["nodes_truenodeids"].as_ints(), held["nodes_trueleafs"].as_ints()
    no, no_leaf = held["nodes_falsenodeids"].as_ints(), held["nodes_falseleafs"].as_ints()
    found: dict[Any, _Node | None] = {"leaf": None}
    for place, feature in enumerate(held["nodes_featureids"].as_ints()):
        ends = ["leaf" if leaf[place] else at[place] for at, leaf in ((yes, yes_leaf), (no, no_leaf))]
        found[place] = _Node(feature, _MODES[int(modes[place])], splits[place], *ends)
    return found, list(held["tree_roots"].as_ints())


def _floats(node: ir.Node, name: str) -> Sequence[float]:
    """Returns the numbers of an attribute: a list, or a tensor under the same name or under the name of newer
    versions."""
    attribute = node.attributes.get(name) or node.attributes[f"{name}_as_tensor"]
    if attribute.type == ir.AttributeType.TENSOR:
        return [float(number) for number in attribute.as_tensor().numpy().ravel()]
    return attribute.as_floats()


def _ways(nodes: Mapping[Any, _Node | None], roots: Sequence[Any]) -> Iterator[tuple[Box, _Node | None]]:
    """Yields each node of each tree with the box of the path to it; None stands for a leaf."""
    for root in roots:
        stack: list[tuple[Any, Box]] = [(root, {})]
        left = 2 * len(nodes) + 1  # a limit, because a malformed tree may have a cycle
        while stack and left:
            left -= 1
            key, box = stack.pop()
            at = nodes[key]
            yield box, at
            if at is not None:
                for end, is_true in ((at.no, False), (at.yes, True)):
                    narrowed = _narrowed(box, at, is_true=is_true)
                    stack += [(end, narrowed)] if narrowed is not None else []


def _narrowed(box: Box, at: _Node, *, is_true: bool) -> Box | None:
    """Returns the box after a split; None if the box is empty."""
    if not math.isfinite(at.threshold) or at.mode == "BRANCH_MEMBER":
        return box
    low, high = box.get(at.feature, (-math.inf, math.inf))
    if at.mode in ("BRANCH_EQ", "BRANCH_NEQ"):
        if (at.mode == "BRANCH_EQ") != is_true:
            return box
        return {**box, at.feature: (at.threshold, at.threshold)} if low <= at.threshold <= high else None
    if (at.mode in ("BRANCH_LEQ", "BRANCH_LT")) == is_true:
        high = min(high, at.threshold)
    else:
        low = max(low, at.threshold)
    return {**box, at.feature: (low, high)} if low < high else None
