"""Reads tree ensembles, and makes rows that reach their leaves and rows that lie at their splits.

Random rows hardly ever reach a leaf deep in a tree, and their features hardly ever equal a threshold. So one row is
drawn for each leaf, inside the intervals on the path to it, and three rows for each split: at the threshold, just below
and just above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onnxsmith.base.seams.constant_tensors import const_tensor
from onnxsmith.graph.structure import walk

_AS_IT_IS = {"Identity", "Cast", "CastLike", "Flatten", "Imputer"}
"""Lists the operators that keep the numbers and the order of columns."""
_DEEPEST = 64
"""Limits the nodes that are followed back. A choice: the limit ends the recursion in any graph."""


@dataclass(frozen=True)
class Column:
    """Names column `index` of the input `name`. The node reads `gain * x + shift` of the column's values x. `exact` is
    True if this is x itself."""

    name: str
    index: int
    gain: float = 1.0
    shift: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether the node reads the input's number unchanged."""
        return self.gain == 1 and self.shift == 0

    def before(self, wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Returns the input values for which the node reads `wanted`."""
        return wanted if self.exact else (wanted - self.shift) / self.gain


def origin(value: ir.Value | None, index: int, depth: int = 0) -> Column | None:
    """Returns the input column from which column `index` of a table comes; None if several numbers enter the column."""
    if value is None or depth > _DEEPEST or index < 0:
        return None
    node = value.producer()
    if node is None:
        is_table = value.is_graph_input() and value.shape is not None and len(value.shape) == 2
        return Column(value.name or "", index) if is_table and value.const_value is None else None
    if node.op_type in _AS_IT_IS:
        return origin(node.inputs[0], index, depth + 1)
    step = _STEPS.get(node.op_type)
    return step(node, index, depth + 1) if step is not None else None


def _joined(node: ir.Node, index: int, depth: int) -> Column | None:
    if node.op_type == "Concat" and node.attributes.get_int("axis", 1) not in (1, -1):
        return None
    for value in node.inputs:
        width = _width(value)
        if width is None:  # the columns after a part of unknown width have no known position
            return None
        if index < width:
            return origin(value, index, depth)
        index -= width
    return None


def _width(value: ir.Value | None, depth: int = 0) -> int | None:
    """Returns the number of columns of a table. The number comes from the table's own shape, or from the shape of the
    table from which it is computed."""
    if value is None or depth > _DEEPEST:
        return None
    if value.shape is not None:
        width = value.shape[-1] if len(value.shape) == 2 else None
        return width if isinstance(width, int) else None
    node = value.producer()
    keeps = node is not None and node.op_type in _AS_IT_IS | {"Scaler"}
    return _width(node.inputs[0], depth + 1) if node is not None and keeps else None


def _chosen(node: ir.Node, index: int, depth: int) -> Column | None:
    if node.op_type == "Gather" and node.attributes.get_int("axis", 0) not in (1, -1):
        return None
    places = _numbers(node.inputs[1])
    if places is None or index >= places.size:
        return None
    return origin(node.inputs[0], int(places[index]), depth)


def _scaled(node: ir.Node, index: int, depth: int) -> Column | None:
    offset = _of(np.asarray(node.attributes.get_floats("offset", [0.0])), index)
    scale = _of(np.asarray(node.attributes.get_floats("scale", [1.0])), index)
    return _affine(origin(node.inputs[0], index, depth), scale, -offset * scale)


def _computed(node: ir.Node, index: int, depth: int) -> Column | None:
    first, second = node.inputs
    held = _numbers(second)
    table = first
    if held is None and node.op_type in ("Add", "Mul"):
        held, table = _numbers(first), second
    if held is None:
        return None
    number = _of(held, index)
    if node.op_type == "Div":
        number = 1 / number if number else math.nan
    gain, shift = {"Add": (1.0, number), "Sub": (1.0, -number)}.get(node.op_type, (number, 0.0))
    return _affine(origin(table, index, depth), gain, shift)


def _affine(found: Column | None, gain: float, shift: float) -> Column | None:
    if found is None or not gain or not math.isfinite(gain) or not math.isfinite(shift):
        return None
    return replace(found, gain=found.gain * gain, shift=found.shift * gain + shift)


def _numbers(value: ir.Value | None) -> npt.NDArray[np.float64] | None:
    tensor = const_tensor(value) if value is not None else None
    if tensor is None or tensor.dtype == ir.DataType.STRING or not tensor.size:
        return None
    held: npt.NDArray[Any] = tensor.numpy()
    is_row = held.size in (1, held.shape[-1] if held.ndim else 1)  # a number for all columns, or one for each
    return held.astype(np.float64).ravel() if is_row else None


def _of(row: npt.NDArray[Any], index: int) -> float:
    return float(row[0] if row.size == 1 else row[index]) if row.size == 1 or index < row.size else math.nan


_STEPS: dict[str, Callable[[ir.Node, int, int], Column | None]] = {
    "Concat": _joined, "FeatureVectorizer": _joined, "Gather": _chosen, "ArrayFeatureExtractor": _chosen,
    "Scaler": _scaled, "Add": _computed, "Sub": _computed, "Mul": _computed, "Div": _computed,
}  # fmt: skip


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


LEAVES, SPLITS = "leaves", "splits"
_FEWEST, _MOST_ROWS = 64, 512
"""Bounds the number of rows. A choice."""
_EQUAL, _BELOW, _ABOVE = 0, -1, 1
_MISSING = 0.1
"""Sets the share of missing features, in half of the rows. A choice."""

Rows = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Makes the rows for some ensembles. `kinds` are the possible kinds of rows. There are no rows at splits if all
    features are computed from the input, because rounding would move the rows off the threshold."""

    ensembles: tuple[Ensemble, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Lists the kinds of rows."""
        exact = any(column.exact for one in self.ensembles for column in one.columns.values())
        return (LEAVES, SPLITS) if exact else (LEAVES,) if self.ensembles else ()

    @property
    def names(self) -> frozenset[str]:
        """Names the inputs that hold features."""
        return frozenset(column.name for one in self.ensembles for column in one.columns.values())

    def renamed(self, names: Mapping[str, str]) -> Table:
        """Returns the same table for renamed inputs; `names` maps old names to new names."""
        return Table(
            tuple(
                replace(one, columns={f: replace(c, name=names.get(c.name, c.name)) for f, c in one.columns.items()})
                for one in self.ensembles
            )
        )

    def wanted(self, kind: str) -> int:
        """Returns the number of rows that reach every leaf or split, within limits."""
        count = sum(len(one.leaves) if kind == LEAVES else 3 * len(one.splits) for one in self.ensembles)
        return min(max(count, _FEWEST), _MOST_ROWS)

    def put(self, values: dict[str, Any], kind: str, part: int, seed: int) -> None:
        """Replaces values of the inputs by rows; `part` selects a batch of rows if not all fit."""
        tables = {name: np.array(values[name]) for name in self.names if _is_table(values.get(name))}
        count = min((len(table) for table in tables.values()), default=0)
        for number, ensemble in enumerate(self.ensembles if count else ()):
            dtypes = {f: tables[c.name].dtype for f, c in ensemble.columns.items() if c.name in tables}
            made = _Maker(ensemble, dtypes, seed + number).rows(kind, count, part)
            for feature, column in ensemble.columns.items():
                table = tables.get(column.name)
                if table is not None and column.index < table.shape[1]:
                    table[:count, column.index] = _fitting(column.before(made[feature]), table.dtype)
        values.update(tables)


def _is_table(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "fiu"


def _fitting(numbers: Rows, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if dtype.kind == "f":
        return numbers.astype(dtype)
    limits = np.iinfo(dtype)
    # Beyond 2^53 float64 has no exact integers, and the cast back could overflow.
    return np.clip(numbers, max(limits.min, -(2**53)), min(limits.max, 2**53)).astype(dtype)


class _Maker:
    """Draws the features of one ensemble."""

    def __init__(self, ensemble: Ensemble, dtypes: Mapping[int, np.dtype[Any]], seed: int) -> None:
        self._ensemble, self._dtypes, self._seed = ensemble, dtypes, seed
        found: dict[int, set[float]] = {feature: set() for feature in ensemble.columns}
        for split in ensemble.splits:
            if split.feature in found and np.isfinite(split.threshold):
                found[split.feature].add(split.threshold)
        self._thresholds = {feature: np.array(sorted(held)) for feature, held in found.items()}

    def rows(self, kind: str, count: int, part: int) -> dict[int, Rows]:
        """Draws `count` numbers for each feature."""
        rng = np.random.default_rng([self._seed, part])
        made = {feature: self._anywhere(feature, count, rng) for feature in self._thresholds}
        if kind == LEAVES:
            for row, place in enumerate(self._order(len(self._ensemble.leaves), count, part)):
                self._enter(made, row, self._ensemble.leaves[place], rng)
            if self._ensemble.misses:
                self._miss(made, count, rng)
            return made
        splits = self._ensemble.splits
        equal = self._order(len(splits), -(-count // 3), part)
        near = self._order(2 * len(splits), count - len(equal), part) if splits else []
        sides = [(place, _EQUAL) for place in equal] + [(at // 2, (_BELOW, _ABOVE)[at % 2]) for at in near]
        for row, (place, side) in enumerate(sides):
            split = splits[place]
            self._enter(made, row, split.box, rng)
            column = self._ensemble.columns.get(split.feature)
            if column is not None and column.exact and split.feature in made:
                made[split.feature][row] = self._beside(split.threshold, side, split.feature)
        return made

    def _order(self, many: int, count: int, part: int) -> Sequence[int]:
        """Returns the next `count` of `many` places in random order. Each place comes once before any place is
        repeated."""
        if not many:
            return []
        order = np.random.default_rng(self._seed).permutation(many)
        return [int(order[(part * count + place) % many]) for place in range(count)]

    def _anywhere(self, feature: int, count: int, rng: np.random.Generator) -> Rows:
        """Draws random numbers, equally many between any two neighbouring thresholds."""
        held = self._thresholds[feature]
        if not held.size:
            return rng.standard_normal(count)
        reach = self._reach(feature)
        ends = np.concatenate([[held[0] - reach], held, [held[-1] + reach]])
        gap = rng.integers(0, len(held) + 1, count)
        return self._whole(
            ends[gap], ends[gap + 1], ends[gap] + (ends[gap + 1] - ends[gap]) * _inner(rng, count), feature
        )

    def _enter(self, made: dict[int, Rows], row: int, box: Box, rng: np.random.Generator) -> None:
        """Moves a row into a box."""
        for feature, (low, high) in box.items():
            if feature not in made:
                continue
            held, reach = self._thresholds[feature], self._reach(feature)
            low = min(float(held[0]), high) - reach if np.isinf(low) else low
            high = max(float(held[-1]), low) + reach if np.isinf(high) else high
            drawn = low + (high - low) * _inner(rng, 1)
            made[feature][row] = self._whole(np.array([low]), np.array([high]), drawn, feature)[0]

    def _reach(self, feature: int) -> float:
        """Returns how far beyond its thresholds a feature is drawn."""
        held = self._thresholds[feature]
        return float(max(held[-1] - held[0], np.abs(held).max() / 2)) or 1.0

    def _is_whole(self, feature: int) -> bool:
        """Whether the feature takes only whole numbers, and the ensemble reads the feature unchanged."""
        dtype = self._dtypes.get(feature)
        return dtype is not None and dtype.kind in "iu" and self._ensemble.columns[feature].exact

    def _whole(self, low: Rows, high: Rows, drawn: Rows, feature: int) -> Rows:
        """Returns the numbers. If only whole numbers are possible, rounds the numbers within the same interval."""
        if not self._is_whole(feature):
            return drawn
        return np.clip(np.rint(drawn), np.floor(low) + 1, np.maximum(np.floor(high), np.floor(low) + 1))

    def _beside(self, threshold: float, side: int, feature: int) -> float:
        if self._is_whole(feature):
            return float(np.floor(threshold) + side)
        dtype = self._dtypes.get(feature, np.dtype(np.float32))
        at = dtype.type(threshold) if dtype.kind == "f" else np.float32(threshold)
        return float(np.nextafter(at, at.dtype.type(side * np.inf)) if side else at)

    def _miss(self, made: dict[int, Rows], count: int, rng: np.random.Generator) -> None:
        """Sets some features of some rows to NaN (missing)."""
        for feature, numbers in made.items():
            if self._dtypes.get(feature, np.dtype(np.float32)).kind == "f":
                numbers[count // 2 :][rng.random(count - count // 2) < _MISSING] = np.nan


def _inner(rng: np.random.Generator, count: int) -> Rows:
    """Draws random points inside an interval, away from its ends."""
    return rng.uniform(0.1, 0.9, count)
